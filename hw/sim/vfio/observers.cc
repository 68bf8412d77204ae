/* SPDX-License-Identifier: BSD-2-Clause */

#include "observers.h"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "messages.h"

namespace dibber::vfio {

namespace {

/* After all participants of the clock when times are equal. */
constexpr unsigned last_of_all = DIBBER_ENDPOINTS + 1;

uint64_t region_size(uint32_t index)
{
    return index == bar0_region ? DIBBER_BAR0_SIZE : index == bar2_region ? aperture_bytes : 0;
}

} // namespace

Observers::Observers(const std::string& path, unsigned card, Simulation& simulation,
                     RootComplex& host)
    : path_(path), card_(card), simulation_(simulation), host_(host), listener_(listen_on(path))
{
}

Observers::~Observers() { unlink(path_.c_str()); }

/* Connections ---------------------------------------------------------------------------------- */

void Observers::add_to(std::vector<pollfd>& list) const
{
    list.push_back({listener_.get(), POLLIN, 0});
    for (auto& client : clients_)
        list.push_back(
            {client->connection.fd(),
             short((backlogged() ? 0 : POLLIN) | (client->connection.sending() ? POLLOUT : 0)), 0});
}

void Observers::serve()
{
    clients_.remove_if([this](auto& client) { return !serve(client); });
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0)
        return;
    if (clients_.size() < max_clients)
        clients_.push_back(std::make_shared<Client>(std::move(socket)));
    else
        refuse(socket);
}

bool Observers::backlogged() const
{
    return scheduled_ > max_backlog_bytes || host_.waiting() > max_backlog_tlps;
}

void Observers::schedule(uint64_t bytes, std::function<void()> action)
{
    bytes += scheduling_cost;
    scheduled_ += bytes;
    simulation_.schedule(simulation_.now(), card_, last_of_all,
                         [this, bytes, action = std::move(action)] {
                             scheduled_ -= bytes;
                             action();
                         });
}

/* False if it has gone. Answers to its reads under way are then dropped. */
bool Observers::serve(const std::shared_ptr<Client>& client)
{
    Connection& connection = client->connection;
    Message message;
    Connection::Result result = Connection::Result::nothing;
    for (unsigned n = 0; n < max_turn && !backlogged() && !connection.overfull(); n++) {
        result = connection.receive(message);
        if (result != Connection::Result::message)
            break;
        const Header& header = message.header;
        try {
            if ((header.flags & type_mask) != type_command ||
                (!client->versioned && header.command != version))
                throw Refusal{EINVAL, "VERSION must come first, and nothing but commands"};
            dispatch(client, message);
        } catch (const Refusal& refusal) {
            if (!(header.flags & no_reply))
                connection.send({header.id, header.command, 0, type_reply | error_flag,
                                 uint32_t(refusal.error)},
                                {});
        }
    }
    return result != Connection::Result::closed && connection.flush();
}

/* Messages ------------------------------------------------------------------------------------- */

void Observers::dispatch(const std::shared_ptr<Client>& client, const Message& message)
{
    auto reply = [&](std::span<const uint8_t> first, std::span<const uint8_t> second = {}) {
        if (!(message.header.flags & no_reply))
            client->connection.send({message.header.id, message.header.command, 0, type_reply, 0},
                                    first, second);
    };
    switch (message.header.command) {
    case version: {
        Version proposed;
        if (client->versioned || !parse(message, proposed) || proposed.major != 0)
            throw Refusal{EINVAL, "VERSION"};
        client->versioned = true;
        /* Without capabilities, even if the client offered some; not longer than its own message,
         * as for any client. */
        static constexpr char capabilities[] = R"({"capabilities":{}})";
        Version accepted = {0, proposed.minor < 1 ? proposed.minor : uint16_t(1)};
        bool brief = message.payload.size() < sizeof(Version) + sizeof(capabilities);
        return reply(bytes_of(accepted),
                     brief ? std::span<const uint8_t>() : bytes_of(capabilities));
    }
    case get_region_info:
        return reply(bytes_of(region_info(message, region_size)));
    case region_read:
        return read(client, message);
    case DIBBER_CLOCK_MESSAGE: {
        std::string state = simulation_.clock_state();
        return reply({reinterpret_cast<const uint8_t*>(state.data()), state.size()});
    }
    case region_write:
        write(message);
        return reply(std::span(message.payload).first(sizeof(RegionAccess)));
    }
    throw Refusal{ENOTSUP, "an observer has the BARs and the state of the clock, nothing else"};
}

void Observers::read(const std::shared_ptr<Client>& client, const Message& message)
{
    RegionAccess access = read_access(message, region_size);
    auto answer = [this, header = message.header, access,
                   client = std::weak_ptr(client)](std::span<const uint8_t> data) {
        reads_--;
        auto there = client.lock();
        if (there && !(header.flags & no_reply))
            there->connection.send({header.id, header.command, 0, type_reply, 0}, bytes_of(access),
                                   data);
    };
    reads_++;
    schedule(access.count,
             [this, access, answer] { host_.read_bar(bar_offset(access), access.count, answer); });
}

void Observers::write(const Message& message)
{
    RegionAccess access = write_access(message, region_size);
    std::vector<uint8_t> bytes(message.payload.begin() + sizeof(access), message.payload.end());
    schedule(access.count,
             [this, offset = bar_offset(access), bytes] { host_.write_bar(offset, bytes); });
}

} // namespace dibber::vfio
