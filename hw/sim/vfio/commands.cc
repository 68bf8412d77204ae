/* The client's commands, one function each: check, execute, answer. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "messages.h"
#include "server.h"

namespace dibber::vfio {

namespace {

uint64_t region_size(uint32_t index)
{
    return index == bar0_region     ? DIBBER_BAR0_SIZE
           : index == bar2_region   ? aperture_bytes
           : index == config_region ? ConfigSpace::size
                                    : 0;
}

} // namespace

void Server::on_version(const Message& message)
{
    Version proposed;
    if (versioned_)
        throw Refusal{EINVAL, "VERSION came twice"};
    if (!parse(message, proposed))
        throw Refusal{EINVAL, "VERSION is too short"};
    if (proposed.major != 0)
        throw Refusal{ENOTSUP, "VERSION " + std::to_string(proposed.major) + " is not known"};
    bool clocked = false;
    std::span<const uint8_t> text = std::span(message.payload).subspan(sizeof(Version));
    if (!text.empty()) {
        if (text.back() != 0)
            throw Refusal{EINVAL, "VERSION: the capabilities have no end"};
        auto json = nlohmann::json::parse(text.begin(), text.end() - 1, nullptr, false);
        if (!json.is_object() ||
            (json.contains("capabilities") && !json["capabilities"].is_object()))
            throw Refusal{EINVAL, "VERSION: the capabilities are not a JSON object"};
        if (json.contains("capabilities") && json["capabilities"].contains("dibber_clock")) {
            if (json["capabilities"]["dibber_clock"] != 1)
                throw Refusal{ENOTSUP, "VERSION: dibber_clock of another version"};
            clocked = true;
        }
    }
    if (used_before_)
        simulation_.reset_card(card_);
    versioned_ = true;
    clocked_ = clocked;
    if (!clocked)
        clock_.free_client(true);

    /* QEMU reads the answer into the buffer of its request: it must not be longer. */
    std::string answer =
        clocked ? R"({"capabilities":{"dibber_clock":1}})" : R"({"capabilities":{}})";
    if (clocked) {
        std::string longer = R"({"capabilities":{"dibber_clock":1,"dibber_random":)" +
                             std::to_string(simulation_.drawn_for(card_));
        std::string image = ",\"dibber_preloaded\":" + std::to_string(simulation_.preloaded());
        if (longer.size() + image.size() + 2 < text.size())
            longer += image;
        longer += "}}";
        if (longer.size() < text.size())
            answer = longer;
    }
    Version accepted = {0, proposed.minor < 1 ? proposed.minor : uint16_t(1)};
    if (text.size() <= answer.size())
        return reply(message.header, bytes_of(accepted));
    reply(message.header, bytes_of(accepted),
          {reinterpret_cast<const uint8_t*>(answer.c_str()), answer.size() + 1});
}

void Server::on_dma_map(const Message& message)
{
    DmaMap map;
    if (!parse(message, map) || map.argsz < sizeof(map))
        throw Refusal{EINVAL, "DMA_MAP is too short"};
    if (message.descriptors.size() > 1)
        throw Refusal{EINVAL, "DMA_MAP with more than one descriptor"};
    bool readable = map.flags & dma_readable, writable = map.flags & dma_writable;
    int error = message.descriptors.empty()
                    ? memory_.map_message(map.address, map.size, readable, writable, *this)
                    : memory_.map_file(map.address, map.size, message.descriptors[0].get(),
                                       map.offset, readable, writable);
    if (error)
        throw Refusal{error, "DMA_MAP of " + hex(map.size) + " bytes at " + hex(map.address) +
                                 ": " + strerror(error)};
    reply(message.header);
}

void Server::on_dma_unmap(const Message& message)
{
    DmaUnmap unmap;
    if (!parse(message, unmap))
        throw Refusal{EINVAL, "DMA_UNMAP is too short"};
    if (unmap.flags & ~dma_unmap_all)
        throw Refusal{ENOTSUP, "DMA_UNMAP with flags " + hex(unmap.flags)};
    int error = 0;
    if (unmap.flags == dma_unmap_all)
        memory_.clear();
    else
        error = memory_.unmap(unmap.address, unmap.size);
    if (error)
        throw Refusal{error, "DMA_UNMAP of " + hex(unmap.size) + " bytes at " + hex(unmap.address) +
                                 ": not mapped so"};
    unmap.argsz = sizeof(unmap);
    reply(message.header, bytes_of(unmap));
}

void Server::on_get_info(const Message& message)
{
    DeviceInfo info;
    if (!parse(message, info) || info.argsz < sizeof(info))
        throw Refusal{EINVAL, "GET_INFO is too short"};
    reply(message.header,
          bytes_of(DeviceInfo{sizeof(info), device_reset_flag | device_pci_flag, regions, irqs}));
}

void Server::on_get_region_info(const Message& message)
{
    reply(message.header, bytes_of(region_info(message, region_size)));
}

void Server::on_get_irq_info(const Message& message)
{
    IrqInfo info;
    if (!parse(message, info) || info.argsz < sizeof(info))
        throw Refusal{EINVAL, "GET_IRQ_INFO is too short"};
    if (info.index >= irqs)
        throw Refusal{EINVAL, "GET_IRQ_INFO of index " + std::to_string(info.index)};
    bool msix = info.index == msix_irq;
    reply(message.header, bytes_of(IrqInfo{sizeof(info), msix ? irq_eventfd | irq_noresize : 0,
                                           info.index, msix ? DIBBER_VECTORS : 0}));
}

void Server::on_set_irqs(Message& message)
{
    IrqSet set;
    if (!parse(message, set) || set.argsz < sizeof(set))
        throw Refusal{EINVAL, "SET_IRQS is too short"};
    uint32_t data = set.flags & irq_data, action = set.flags & irq_action;
    if (set.index >= irqs || (set.flags & ~(irq_data | irq_action)) || (data & (data - 1)) ||
        !data || (action & (action - 1)) || !action)
        throw Refusal{EINVAL, "SET_IRQS with index " + std::to_string(set.index) + ", flags " +
                                  hex(set.flags)};
    uint32_t limit = set.index == msix_irq ? DIBBER_VECTORS : 0;
    if (set.start > limit || set.count > limit - set.start)
        throw Refusal{EINVAL, "SET_IRQS of " + std::to_string(set.count) + " vectors from " +
                                  std::to_string(set.start)};
    if (action != irq_trigger)
        throw Refusal{ENOTSUP, "SET_IRQS: vectors cannot be masked by message"};
    size_t given = message.descriptors.size();
    if (data == irq_data_eventfd) {
        if (given != 0 && given != set.count)
            throw Refusal{EINVAL, "SET_IRQS of " + std::to_string(set.count) + " vectors with " +
                                      std::to_string(given) + " descriptors"};
        for (uint32_t i = 0; i < set.count; i++)
            eventfds_[set.start + i] = given ? std::move(message.descriptors[i]) : Descriptor();
        program_vectors();
    } else if (set.count == 0) {
        for (auto& fd : eventfds_)
            fd = Descriptor();
        if (limit)
            program_vectors();
    } else {
        auto flags = std::span(message.payload).subspan(sizeof(set));
        if (data == irq_data_bool && flags.size() < set.count)
            throw Refusal{EINVAL, "SET_IRQS is too short"};
        for (uint32_t i = 0; i < set.count; i++)
            if (data == irq_data_none || flags[i])
                interrupt(set.start + i);
    }
    reply(message.header);
}

/* The work of an operating system that enables MSI-X: give each vector an address by which the root
 * complex recognizes it, and unmask it. */
void Server::program_vectors()
{
    bool any = false;
    std::vector<uint32_t> table;
    for (uint32_t v = 0; v < DIBBER_VECTORS; v++) {
        bool used = eventfds_[v].get() >= 0;
        any |= used;
        table.insert(table.end(), {uint32_t(RootComplex::interrupt_base), 0, v, used ? 0u : 1u});
    }
    host_.set_interrupts(any);
    at_time_of(owner(DIBBER_MSIX_TABLE_BASE), 4 * table.size(), [this, table = std::move(table)] {
        host_.write_bar(DIBBER_MSIX_TABLE_BASE,
                        {reinterpret_cast<const uint8_t*>(table.data()), 4 * table.size()});
    });
}

unsigned Server::owner(uint64_t offset) const
{
    if (!clocked_)
        return DIBBER_ENDPOINTS; /* after the endpoints when times are equal */
    std::optional<unsigned> endpoint;
    if (offset >= DIBBER_ENDPOINT_BASE &&
        (offset - DIBBER_ENDPOINT_BASE) / DIBBER_ENDPOINT_STRIDE < DIBBER_ENDPOINTS)
        endpoint = unsigned((offset - DIBBER_ENDPOINT_BASE) / DIBBER_ENDPOINT_STRIDE);
    endpoint = clock_.owner(card_, endpoint);
    if (!endpoint)
        throw Refusal{ENOTCONN, "no endpoint has joined the clock yet"};
    return *endpoint;
}

void Server::at_time_of(unsigned endpoint, uint64_t bytes, std::function<void()> action)
{
    if (clocked_)
        fence(endpoint);
    at(clocked_ ? clock_.time_of(card_, endpoint) : simulation_.now(), endpoint, bytes,
       std::move(action));
}

void Server::at(Time time, unsigned endpoint, uint64_t bytes, std::function<void()> action)
{
    bytes += scheduling_cost;
    scheduled_ += bytes;
    simulation_.schedule(time, card_, endpoint, [this, bytes, action = std::move(action)] {
        scheduled_ -= bytes;
        action();
    });
}

WriteCombiner& Server::combiner(unsigned endpoint)
{
    auto leave = [this, endpoint](Time time, uint64_t offset, std::span<const uint8_t> bytes,
                                  uint64_t enables) {
        at(time, endpoint, bytes.size(),
           [this, offset, bytes = std::vector(bytes.begin(), bytes.end()), enables] {
               host_.write_combined(offset, bytes, enables);
           });
    };
    return combiners_.try_emplace(endpoint, host_.profile(), leave).first->second;
}

/* A store to the window's control page comes from the library's flush, which has a fence before and
 * behind it. So it is no write-combined store here, but what empties the buffers. */
void Server::store(unsigned endpoint, uint64_t offset, std::span<const uint8_t> bytes)
{
    constexpr uint64_t control =
        RootComplex::aperture_offset + DIBBER_APERTURE_BYTES - DIBBER_APERTURE_PAGE;
    if (offset >= control) {
        fence_all(endpoint);
        return at_time_of(endpoint, bytes.size(),
                          [this, offset, bytes = std::vector(bytes.begin(), bytes.end())] {
                              host_.write_bar(offset, bytes);
                          });
    }
    Time end = combiner(endpoint).store(clock_.time_of(card_, endpoint), offset, bytes);
    clock_.compute(card_, endpoint, end);
}

void Server::fence(unsigned endpoint)
{
    auto found = combiners_.find(endpoint);
    if (found == combiners_.end() || found->second.empty())
        return;
    Time end = found->second.fence(clock_.time_of(card_, endpoint));
    clock_.compute(card_, endpoint, end);
}

/* An access of the window comes without its endpoint, so owner() may give a fence to another
 * participant than the stores before it. So a fence of the window empties all buffers, also those
 * of a participant that has left the clock for good. `endpoint` goes on when all lines have left.
 */
void Server::fence_all(unsigned endpoint)
{
    Time end = 0;
    for (auto& [other, combiner] : combiners_)
        if (!combiner.empty()) {
            bool present = clock_.owner(card_, other) == other;
            Time begin = present ? clock_.time_of(card_, other) : simulation_.now();
            end = std::max(end, combiner.fence(begin));
        }
    clock_.compute(card_, endpoint, end);
}

bool Server::backlogged() const
{
    return !clocked_ && (scheduled_ > max_backlog_bytes || host_.waiting() > max_backlog_tlps);
}

void Server::on_region_read(const Message& message)
{
    RegionAccess access = read_access(message, region_size);
    if (access.region == config_region) {
        std::vector<uint8_t> data(access.count);
        host_.config.read(unsigned(access.offset), data);
        return reply(message.header, bytes_of(access), data);
    }
    uint64_t offset = bar_offset(access);
    unsigned endpoint = owner(offset);
    auto answer = [this, header = message.header, access, endpoint,
                   client = std::weak_ptr(client_)](std::span<const uint8_t> data) {
        if (client.lock() != client_ || !client_)
            return;
        if (clocked_)
            clock_.end_read(card_, endpoint);
        reply(header, bytes_of(access), data);
    };
    if (clocked_ && access.region == bar2_region)
        fence_all(endpoint);
    at_time_of(endpoint, access.count, [this, offset, count = access.count, answer] {
        host_.read_bar(offset, count, answer);
    });
    if (clocked_)
        clock_.begin_read(card_, endpoint);
}

void Server::on_region_write(const Message& message)
{
    RegionAccess access = write_access(message, region_size);
    auto data = std::span(message.payload).subspan(sizeof(access));
    if (access.region == config_region) {
        host_.config.write(unsigned(access.offset), data);
    } else {
        uint64_t offset = bar_offset(access);
        if (clocked_ && access.region == bar2_region)
            store(owner(offset), offset, data);
        else
            at_time_of(owner(offset), access.count,
                       [this, offset, bytes = std::vector(data.begin(), data.end())] {
                           host_.write_bar(offset, bytes);
                       });
    }
    reply(message.header, bytes_of(access));
}

void Server::on_reset(const Message& message)
{
    simulation_.reset_card(card_);
    reply(message.header);
}

void Server::on_clock(const Message& message)
{
    dibber_clock_request request;
    if (!clocked_)
        throw Refusal{ENOTSUP, "the clock extension was not asked for in VERSION"};
    if (message.payload.size() != sizeof(request) || !parse(message, request))
        throw Refusal{EINVAL, "CLOCK of " + std::to_string(message.payload.size()) + " bytes"};
    auto answer = [this, header = message.header,
                   client = std::weak_ptr(client_)](const dibber_clock_reply& reply_) {
        if (client.lock() == client_ && client_)
            reply(header, bytes_of(reply_));
    };
    clock_.request(card_, request, answer);
}

} // namespace dibber::vfio
