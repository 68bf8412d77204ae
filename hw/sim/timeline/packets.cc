/* SPDX-License-Identifier: BSD-2-Clause */

#include "packets.h"

#include <cstring>

namespace dibber {

namespace {

/* First symbols of control words. */
enum Control : uint8_t {
    idle = 0xbc,    /* K28.5, a flow word */
    start = 0xfb,   /* K27.7 */
    end = 0xfd,     /* K29.7 */
    end_bad = 0xfe, /* K30.7 */
    resume = 0xf7,  /* K23.7 */
    nonce = 0x1c,   /* K28.0 */
    ping = 0x5c,    /* K28.2 */
    pong = 0x7c,    /* K28.3 */
};

const char* kind_name(uint8_t kind)
{
    switch (dibber_packet(kind)) {
    case DIBBER_PACKET_DEPOSIT:
        return "DEPOSIT";
    case DIBBER_PACKET_ACK:
        return "ACK";
    case DIBBER_PACKET_MESSAGE:
        return "MESSAGE";
    case DIBBER_PACKET_SCOUT:
        return "SCOUT";
    case DIBBER_PACKET_SCOUT_REPLY:
        return "SCOUT_REPLY";
    case DIBBER_PACKET_QUESTION:
        return "QUESTION";
    }
    return "packet";
}

} // namespace

const char* channel_name(unsigned channel)
{
    static const char* const names[] = {DIBBER_CHANNEL_NAMES};
    return names[channel % PacketListener::channels];
}

int PacketListener::hear(const Symbols& symbols, bool erroneous, Time now, Time word)
{
    /* The receiver drops every begun packet, because the lost word might have been a RESUME. */
    if (erroneous) {
        cut(now);
        return -1;
    }
    uint8_t first = symbols.data & 0xff, second = symbols.data >> 8 & 0xff;
    if (symbols.k == 0) {
        if (current_ < 0)
            return -1;
        Packet& packet = packets_[unsigned(current_)];
        if (packet.prefix > 0) {
            packet.prefix--;
            return -1;
        }
        if (packet.words < DIBBER_HEADER_WORDS)
            std::memcpy(reinterpret_cast<char*>(&packet.header) + 4 * packet.words, &symbols.data,
                        4);
        packet.words++;
        return -1;
    }
    switch (first) {
    case idle:
        return uint8_t(~second) == (symbols.data >> 16 & 0xff) ? second : -1;
    case start: {
        unsigned channel = second & 3;
        if (packets_[channel].begun)
            cut(now);
        packets_[channel] = {};
        packets_[channel].begun = true;
        packets_[channel].from = now;
        packets_[channel].prefix = second >> 4;
        current_ = int(channel);
        return -1;
    }
    case resume:
        current_ = packets_[second & 3].begun ? int(second & 3) : -1;
        return -1;
    case end:
    case end_bad:
        if (current_ >= 0)
            finish(unsigned(current_), now + word, first == end ? "" : " (ended as bad)");
        current_ = -1;
        return -1;
    case nonce:
    case ping:
    case pong:
        return -1;
    default:
        cut(now);
        return -1;
    }
}

void PacketListener::finish(unsigned channel, Time now, const char* how)
{
    Packet& packet = packets_[channel];
    const dibber_packet_header& h = packet.header;
    char name[64];
    snprintf(name, sizeof(name), "%s%s", kind_name(h.kind), how);
    events_.span(first_row_ + channel, name, packet.from, now,
                 "\"channel\":\"%s\",\"source\":%u,\"target\":%u,\"psn\":%u,\"ack\":%u,"
                 "\"flags\":%u,\"incarnation\":%u,\"bytes\":%u,\"words\":%llu",
                 channel_name(channel), h.source, h.target, h.psn, h.ack, h.flags, h.incarnation,
                 h.length, static_cast<unsigned long long>(packet.words));
    packet.begun = false;
}

void PacketListener::cut(Time now)
{
    for (unsigned channel = 0; channel < channels; channel++)
        if (packets_[channel].begun)
            finish(channel, now, " (cut)");
    current_ = -1;
}

} // namespace dibber
