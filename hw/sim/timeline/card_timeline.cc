/* SPDX-License-Identifier: BSD-2-Clause */

#include "card_timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "names.h"

namespace dibber {

namespace {

/* Rows, in the order in which they are shown. */
enum Row : unsigned {
    row_calls = 1, /* + endpoint */
    row_bar = 10,
    row_link_down = 11,
    row_taken = 12,
    row_receiver = 13,
    row_program = 14,
    row_transmitter = 20,
    row_posted_credit = 21,
    row_read_credit = 22,
    row_link_up = 23,
    row_memory = 24,
    row_queues = 25,
    row_sends = 30, /* + channel */
    row_hears = 40,
    row_stop = 50,
};

const char* tlp_name(const Tlp& tlp)
{
    switch (tlp.kind()) {
    case TlpKind::memory_read:
        return "read";
    case TlpKind::memory_write:
        return "write";
    case TlpKind::completion:
        return tlp.has_data() ? "completion" : "completion without data";
    case TlpKind::other:
        break;
    }
    return "other TLP";
}

uint8_t tag_of(const Tlp& tlp)
{
    return tlp.kind() == TlpKind::completion ? tlp.completion_tag() : tlp.tag();
}

uint64_t address_of(const Tlp& tlp)
{
    return tlp.kind() == TlpKind::completion ? tlp.lower_address() : tlp.first_byte();
}

/* Bytes of a request, or of a completion's payload. */
unsigned length_of(const Tlp& tlp)
{
    if (tlp.kind() != TlpKind::completion)
        return tlp.span_bytes();
    unsigned payload = tlp.has_data() ? 4 * tlp.length_dws() - (tlp.lower_address() & 3) : 0;
    return std::min(payload, tlp.byte_count());
}

#define TLP_ARGUMENTS "\"tag\":%u,\"address\":\"0x%llx\",\"length\":%u,\"bytes\":%u"
#define OF_TLP(tlp)                                                                                \
    tag_of(tlp), static_cast<unsigned long long>(address_of(tlp)), length_of(tlp), (tlp).bytes()

} // namespace

CardTimeline::CardTimeline(unsigned card)
    : events(card), sends_(events, row_sends), hears_(events, row_hears)
{
    events.name_card();
    for (unsigned endpoint = 0; endpoint < DIBBER_ENDPOINTS; endpoint++)
        events.name_row(row_calls + endpoint,
                        "calls and waits, endpoint " + std::to_string(endpoint));
    events.name_row(row_bar, "writes of BAR 0 by the CPU");
    events.name_row(row_link_down, "PCIe link to the card");
    events.name_row(row_taken, "TLPs taken by the card");
    events.name_row(row_receiver, "wait: a TLP until the card takes it");
    events.name_row(row_program, "control program");
    events.name_row(row_transmitter, "wait: the card until the PCIe block takes a TLP");
    events.name_row(row_posted_credit, "wait: writes for credit");
    events.name_row(row_read_credit, "wait: reads for credit");
    events.name_row(row_link_up, "PCIe link from the card");
    events.name_row(row_memory, "writes in host memory");
    events.name_row(row_queues, "queue entries and interrupts");
    for (unsigned channel = 0; channel < PacketListener::channels; channel++) {
        std::string name = channel_name(channel);
        events.name_row(row_sends + channel, "sends on " + name);
        events.name_row(row_hears + channel, "receives on " + name);
        events.name_row(row_stop + channel, "wait: STOP of " + name);
    }
}

/* Clock ---------------------------------------------------------------------------------------- */

void CardTimeline::call(unsigned endpoint, uint32_t call, uint32_t count, Time from, Time until)
{
    events.span(row_calls + endpoint, call_name(call), from, until, "\"count\":%u", count);
}

void CardTimeline::waited(unsigned endpoint, Time from, Time until, bool woken)
{
    events.span(row_calls + endpoint, "wait", from, until, "\"woken\":%s",
                woken ? "true" : "false");
}

void CardTimeline::read_register(unsigned endpoint, Time from, Time until)
{
    events.span(row_calls + endpoint, "register read", from, until, "%s", "");
}

/* Host ----------------------------------------------------------------------------------------- */

void CardTimeline::bar_written(Time at, uint64_t offset, std::span<const uint8_t> bytes)
{
    if (offset >= DIBBER_ENDPOINT_BASE) {
        uint64_t endpoint = (offset - DIBBER_ENDPOINT_BASE) / DIBBER_ENDPOINT_STRIDE;
        uint64_t within = (offset - DIBBER_ENDPOINT_BASE) % DIBBER_ENDPOINT_STRIDE;
        if (endpoint < slots_.size() && within + bytes.size() <= slots_[endpoint].size()) {
            std::copy(bytes.begin(), bytes.end(), slots_[endpoint].begin() + long(within));
            events.instant(row_bar, "slot", at, "\"endpoint\":%u,\"slot\":%u,\"bytes\":%zu",
                           unsigned(endpoint), unsigned(within / DIBBER_SLOT_BYTES), bytes.size());
            return;
        }
    }
    if (bytes.size() == 4) {
        uint32_t value;
        std::memcpy(&value, bytes.data(), 4);
        return register_written(at, offset, value);
    }
    events.instant(row_bar, "memory of the card", at, "\"offset\":\"0x%llx\",\"bytes\":%zu",
                   static_cast<unsigned long long>(offset), bytes.size());
}

void CardTimeline::register_written(Time at, uint64_t offset, uint32_t value)
{
    Queue& administrator = queues_[0];
    if (offset == DIBBER_HOST_ADMIN_CQ_LOW)
        administrator.base = (administrator.base & ~uint64_t(UINT32_MAX)) | value;
    if (offset == DIBBER_HOST_ADMIN_CQ_HIGH)
        administrator.base = (administrator.base & UINT32_MAX) | uint64_t(value) << 32;
    if (offset == DIBBER_HOST_ADMIN_CQ_ENTRIES)
        administrator.bytes = uint64_t(value) * DIBBER_QUEUE_ENTRY_BYTES;
    if (offset >= DIBBER_ENDPOINT_BASE) {
        uint64_t endpoint = (offset - DIBBER_ENDPOINT_BASE) / DIBBER_ENDPOINT_STRIDE;
        uint64_t within = (offset - DIBBER_ENDPOINT_BASE) % DIBBER_ENDPOINT_STRIDE;
        if (endpoint < slots_.size() &&
            within == DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_COMMAND_PRODUCER)
            return doorbell(at, unsigned(endpoint), value);
    }
    events.instant(row_bar, "register", at, "\"offset\":\"0x%llx\",\"value\":\"0x%x\"",
                   static_cast<unsigned long long>(offset), value);
}

/* The commands since the last doorbell. A step of more than the slots is a new beginning. */
void CardTimeline::doorbell(Time at, unsigned endpoint, uint32_t producer)
{
    uint32_t last = producers_[endpoint];
    producers_[endpoint] = producer;
    if (producer == last || producer - last > DIBBER_SLOTS) {
        events.instant(row_bar, "doorbell", at, "\"endpoint\":%u,\"producer\":%u", endpoint,
                       producer);
        return;
    }
    for (uint32_t n = last; n != producer; n++) {
        const uint8_t* slot =
            slots_[endpoint].data() + size_t(n % DIBBER_SLOTS) * DIBBER_SLOT_BYTES;
        dibber_command command;
        std::memcpy(&command, slot, sizeof(command));
        if (command.opcode == DIBBER_OPCODE_ENDPOINT_OPEN) {
            dibber_admin_command open;
            std::memcpy(&open, slot, sizeof(open));
            if (open.endpoint > 0 && open.endpoint < DIBBER_ENDPOINTS)
                queues_[open.endpoint] = {open.cq_base,
                                          uint64_t(open.cq_entries) * DIBBER_QUEUE_ENTRY_BYTES};
            if (open.endpoint < DIBBER_ENDPOINTS)
                queues_[DIBBER_ENDPOINTS + open.endpoint] = {
                    open.eq_base, uint64_t(open.eq_entries) * DIBBER_QUEUE_ENTRY_BYTES};
        }
        bool administers = command.opcode >= DIBBER_OPCODE_ENDPOINT_OPEN;
        events.instant(row_bar, "doorbell", at,
                       "\"endpoint\":%u,\"producer\":%u,\"command\":\"%s\",\"cookie\":%u,"
                       "\"node\":%u,\"length\":%u",
                       endpoint, n + 1, opcode_name(command.opcode), command.cookie,
                       administers ? 0 : command.node, administers ? 0 : command.length);
    }
}

void CardTimeline::to_card(const Tlp& tlp, Time from, Time until)
{
    events.span(row_link_down, tlp_name(tlp), from, until, TLP_ARGUMENTS, OF_TLP(tlp));
}

void CardTimeline::memory_busy(Time arrival, Time until)
{
    uint64_t number = ++numbers_;
    events.begin("memory", "wait: memory", number, arrival, "%s", "");
    events.end("memory", "wait: memory", number, until);
}

bool CardTimeline::is_queue_entry(uint64_t address, unsigned bytes, unsigned& queue) const
{
    for (queue = 0; queue < queues_.size(); queue++)
        if (bytes == DIBBER_QUEUE_ENTRY_BYTES &&
            address - queues_[queue].base < queues_[queue].bytes)
            return true;
    return false;
}

void CardTimeline::in_memory(Time at, const Tlp& tlp)
{
    unsigned queue;
    auto payload = tlp.payload();
    if (!is_queue_entry(tlp.first_byte(), tlp.span_bytes(), queue) ||
        payload.size() < sizeof(dibber_queue_entry)) {
        events.instant(row_memory, "write", at, "\"address\":\"0x%llx\",\"length\":%u",
                       static_cast<unsigned long long>(tlp.first_byte()), tlp.span_bytes());
        return;
    }
    static const char* const statuses[] = {DIBBER_STATUS_NAMES};
    dibber_queue_entry entry;
    std::memcpy(&entry, payload.data(), sizeof(entry));
    bool known = entry.status < sizeof(statuses) / sizeof(statuses[0]);
    events.instant(row_queues, entry.kind == DIBBER_ENTRY_NOTICE ? "notice" : "completion", at,
                   "\"endpoint\":%u,\"cookie\":%u,\"status\":\"%s\",\"node\":%u,\"length\":%u",
                   queue % DIBBER_ENDPOINTS, entry.cookie, known ? statuses[entry.status] : "?",
                   entry.node, entry.length);
}

void CardTimeline::interrupted(Time at, unsigned vector)
{
    events.instant(row_queues, "interrupt", at, "\"vector\":%u", vector);
}

/* PCIe block ----------------------------------------------------------------------------------- */

void CardTimeline::transmitter(bool waits, Time now)
{
    if (waits && !transmitter_waits_) {
        transmitter_waits_ = now;
    } else if (!waits && transmitter_waits_) {
        events.span(row_transmitter, "not ready", *transmitter_waits_, now, "%s", "");
        transmitter_waits_.reset();
    }
}

void CardTimeline::receiver(bool waits, Time now)
{
    if (waits && !receiver_waits_) {
        receiver_waits_ = now;
    } else if (!waits && receiver_waits_) {
        events.span(row_receiver, "not taken", *receiver_waits_, now, "%s", "");
        receiver_waits_.reset();
    }
}

void CardTimeline::emitted(const Tlp& tlp, Time now)
{
    if (tlp.kind() != TlpKind::memory_read)
        return;
    reads_[tlp.tag()] = ++numbers_;
    events.begin("read", "read of host memory", numbers_, now, TLP_ARGUMENTS, OF_TLP(tlp));
}

void CardTimeline::taken(const Tlp& tlp, Time now)
{
    events.instant(row_taken, tlp_name(tlp), now, TLP_ARGUMENTS, OF_TLP(tlp));
    if (tlp.kind() != TlpKind::completion)
        return;
    uint64_t& number = reads_[tlp.completion_tag()];
    if (number && length_of(tlp) >= tlp.byte_count()) {
        events.end("read", "read of host memory", number, now);
        number = 0;
    }
}

void CardTimeline::left(const Tlp& tlp, Time ready, Time from, Time until)
{
    if (from > ready)
        events.span(tlp.kind() == TlpKind::memory_read ? row_read_credit : row_posted_credit,
                    "no credit", ready, from, "%s", "");
    events.span(row_link_up, tlp_name(tlp), from, until, TLP_ARGUMENTS ",\"card_ts\":%llu.%06u",
                OF_TLP(tlp), static_cast<unsigned long long>(tlp.at / 1000000),
                unsigned(tlp.at % 1000000));
}

/* Link ----------------------------------------------------------------------------------------- */

void CardTimeline::heard(const SerialInputs& in, Time now, Time word)
{
    if (!in.serial_rx_valid)
        return;
    bool erroneous = in.serial_rx_code_error || in.serial_rx_disparity_error;
    int flow = hears_.hear(in.serial_rx, erroneous, now, word);
    for (unsigned channel = 0; flow >= 0 && channel < stopped_.size(); channel++) {
        bool stop = flow >> channel & 1;
        if (stop && !stopped_[channel]) {
            stopped_[channel] = now;
        } else if (!stop && stopped_[channel]) {
            events.span(row_stop + channel, "STOP", *stopped_[channel], now, "%s", "");
            stopped_[channel].reset();
        }
    }
}

/* Control program ------------------------------------------------------------------------------ */

void CardTimeline::look_at_program(const Device& device, uint64_t cycle, Time now, Time period)
{
    if (device.sram_bytes() < DIBBER_SHARED_FROM_END)
        return;
    size_t shared = device.sram_bytes() - DIBBER_SHARED_FROM_END;
    uint32_t head = device.sram_word(shared + offsetof(dibber_mcp_shared, trace_head));
    if (head == traced_)
        return;
    if (device.sram_word(shared + offsetof(dibber_mcp_shared, hash)) != DIBBER_INTERFACE_HASH)
        return;
    /* A head before the last one belongs to a program that has begun anew. */
    if (head < traced_)
        traced_ = 0;
    traced_ = head - std::min(head - traced_, uint32_t(DIBBER_TRACE_ENTRIES));
    for (; traced_ != head; traced_++) {
        size_t at = shared + offsetof(dibber_mcp_shared, trace) +
                    traced_ % DIBBER_TRACE_ENTRIES * sizeof(dibber_trace_entry);
        dibber_trace_entry entry;
        entry.cycles = device.sram_word(at);
        entry.event = device.sram_word(at + 4);
        entry.argument[0] = device.sram_word(at + 8);
        entry.argument[1] = device.sram_word(at + 12);
        Time ago = uint32_t(uint32_t(cycle) - entry.cycles) * period;
        program_event(entry, now - std::min(ago, now));
    }
}

void CardTimeline::program_event(const dibber_trace_entry& entry, Time at)
{
    static const char* const states[] = {DIBBER_MCP_STATE_NAMES};
    uint32_t state = entry.event & 0xff;
    events.instant(row_program, trace_name(entry.event >> 8), at,
                   "\"handler\":\"%s\",\"argument0\":\"0x%x\",\"argument1\":\"0x%x\"",
                   state < sizeof(states) / sizeof(states[0]) ? states[state] : "?",
                   entry.argument[0], entry.argument[1]);
}

void CardTimeline::cut(Time now)
{
    transmitter(false, now);
    receiver(false, now);
    sends_.cut(now);
    hears_.cut(now);
    for (unsigned channel = 0; channel < stopped_.size(); channel++)
        if (stopped_[channel])
            events.span(row_stop + channel, "STOP", *stopped_[channel], now, "%s", "");
    stopped_ = {};
    for (uint64_t& number : reads_)
        if (uint64_t open = std::exchange(number, 0))
            events.end("read", "read of host memory", open, now);
}

} // namespace dibber
