/* SPDX-License-Identifier: BSD-2-Clause */

#include "server.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

#include "messages.h"

namespace dibber::vfio {

Server::Server(const std::string& path, unsigned card, Simulation& simulation, Clock& clock,
               RootComplex& host, Memory& memory)
    : path_(path), card_(card), simulation_(simulation), clock_(clock), host_(host),
      memory_(memory), listener_(listen_on(path))
{
}

Server::~Server() { unlink(path_.c_str()); }

void Server::say(const std::string& what)
{
    /* A client that only sends malformed messages must not fill the disk. */
    if (++complaints_ <= 20)
        fprintf(stderr, "dibber-sim: card%u: %s\n", card_, what.c_str());
}

/* Connections ---------------------------------------------------------------------------------- */

void Server::add_to(std::vector<pollfd>& list) const
{
    list.push_back({listener_.get(), POLLIN, 0});
    if (client_)
        list.push_back({client_->fd(),
                        short((backlogged() ? 0 : POLLIN) | (client_->sending() ? POLLOUT : 0)),
                        0});
}

bool Server::serve()
{
    bool busy = serve_client();
    auto before = client_;
    accept();
    return busy || client_ != before;
}

bool Server::serve_client()
{
    bool busy = false;
    if (client_) {
        auto client = client_;
        Message message;
        Connection::Result result = Connection::Result::nothing;
        for (unsigned n = 0; n < max_turn && !backlogged() && !client->overfull(); n++) {
            result = client->receive(message);
            if (result != Connection::Result::message)
                break;
            handle(message);
            busy = true;
            if (client_ != client)
                return true;
        }
        if (client_ == client && result == Connection::Result::closed)
            disconnect(client->why());
        else if (client_ == client && !client->flush())
            disconnect("does not take its answers");
        else if (client_ == client && scheduled_ > max_scheduled) {
            simulation_.forget(card_);
            scheduled_ = 0;
            disconnect("sends more accesses than can wait while time stands");
        }
    }
    return busy;
}

static bool hung_up(int fd)
{
    pollfd client = {fd, POLLIN, 0};
    return poll(&client, 1, 0) > 0 && client.revents & POLLHUP;
}

void Server::accept()
{
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0)
        return;
    /* A client that closes and comes again at once is not a second one. */
    if (client_ && hung_up(client_->fd()))
        serve_client();
    if (client_) {
        refuse(socket);
        return say("a second client was refused");
    }
    client_ = std::make_shared<Connection>(std::move(socket));
    complaints_ = 0;
}

void Server::disconnect(const std::string& why)
{
    if (why != "closed")
        say("client disconnected: " + why);
    bool was_free = versioned_ && !clocked_;
    client_.reset();
    memory_.clear();
    for (auto& fd : eventfds_)
        fd = Descriptor();
    interrupts_.clear();
    /* No more reads or writes of memory that is unmapped. */
    host_.config.reset();
    host_.set_interrupts(false);
    auto requests = std::move(requests_);
    requests_.clear();
    reads_unanswered_ = 0;
    for (auto& [id, request] : requests)
        if (request.answer)
            request.answer(false, {});
    used_before_ |= versioned_;
    versioned_ = clocked_ = false;
    combiners_.clear();
    if (was_free)
        clock_.free_client(false);
    clock_.disconnect(card_);
}

/* Messages ------------------------------------------------------------------------------------- */

void Server::reply(const Header& to, std::span<const uint8_t> first,
                   std::span<const uint8_t> second)
{
    if (!(to.flags & no_reply))
        client_->send({to.id, to.command, 0, type_reply, 0}, first, second);
}

void Server::handle(Message& message)
{
    const Header& header = message.header;
    if ((header.flags & type_mask) == type_reply)
        return handle_reply(message);
    try {
        if ((header.flags & type_mask) != type_command)
            throw Refusal{EINVAL, "message of unknown type"};
        if (!versioned_ && header.command != version)
            throw Refusal{EINVAL, "VERSION must come first"};
        dispatch(message);
    } catch (const Refusal& refusal) {
        say("message " + std::to_string(header.command) + ": " + refusal.why);
        if (!(header.flags & no_reply))
            client_->send(
                {header.id, header.command, 0, type_reply | error_flag, uint32_t(refusal.error)},
                {});
    }
}

void Server::dispatch(Message& message)
{
    switch (message.header.command) {
    case version:
        return on_version(message);
    case dma_map:
        return on_dma_map(message);
    case dma_unmap:
        return on_dma_unmap(message);
    case get_info:
        return on_get_info(message);
    case get_region_info:
        return on_get_region_info(message);
    case get_irq_info:
        return on_get_irq_info(message);
    case set_irqs:
        return on_set_irqs(message);
    case region_read:
        return on_region_read(message);
    case region_write:
        return on_region_write(message);
    case device_reset:
        return on_reset(message);
    case DIBBER_CLOCK_MESSAGE:
        return on_clock(message);
    }
    throw Refusal{ENOTSUP, "unknown command"};
}

/* Our requests to the client ------------------------------------------------------------------- */

uint16_t Server::send_request(Command command, const DmaAccess& access,
                              std::span<const uint8_t> bytes, Request request)
{
    uint16_t id;
    do
        id = uint16_t(next_serial_++);
    while (requests_.count(id));
    request.serial = next_serial_ - 1;
    requests_.emplace(id, std::move(request));
    client_->send({id, command, 0, type_command, 0},
                  {reinterpret_cast<const uint8_t*>(&access), sizeof(access)}, bytes);
    return id;
}

void Server::message_write(uint64_t address, std::span<const uint8_t> bytes)
{
    if (client_ && requests_.size() < max_requests)
        send_request(dma_write, {address, bytes.size()}, bytes, {0, 0, {}});
    else
        say("a write by message was dropped");
}

void Server::message_read(uint64_t address, unsigned bytes, Answer answer)
{
    if (!client_ || requests_.size() >= max_requests)
        return answer(false, {});
    reads_unanswered_++;
    send_request(dma_read, {address, bytes}, {}, {0, bytes, std::move(answer)});
}

void Server::handle_reply(const Message& message)
{
    const Header& header = message.header;
    auto found = requests_.find(header.id);
    bool is_read = found != requests_.end() && found->second.answer;
    if (found == requests_.end() || header.command != (is_read ? dma_read : dma_write))
        return say("a reply to nothing");
    Request request = std::move(found->second);
    requests_.erase(found);
    bool good = !(header.flags & error_flag);
    if (!good)
        say("the client refused " + std::string(is_read ? "a read" : "a write") +
            " of its memory: " + strerror(int(header.error)));
    if (is_read) {
        reads_unanswered_--;
        std::span<const uint8_t> data(message.payload);
        if (good && data.size() != sizeof(DmaAccess) + request.bytes) {
            say("DMA_READ was answered with " + std::to_string(data.size()) + " bytes");
            good = false;
        }
        if (good)
            request.answer(true, data.subspan(sizeof(DmaAccess)));
        else
            request.answer(false, {});
    }
    signal_interrupts();
}

void Server::interrupt(unsigned vector)
{
    /* One that already waits behind the same writes is enough, because an eventfd wakes without a
     * count. */
    if (std::find(interrupts_.begin(), interrupts_.end(), std::pair(next_serial_, vector)) ==
        interrupts_.end())
        interrupts_.push_back({next_serial_, vector});
    signal_interrupts();
}

/* A notice must not overtake the data it announces, not even data that goes by message. */
void Server::signal_interrupts()
{
    while (!interrupts_.empty()) {
        auto [serial, vector] = interrupts_.front();
        for (auto& [id, request] : requests_)
            if (!request.answer && request.serial < serial)
                return;
        interrupts_.pop_front();
        if (vector < eventfds_.size() && eventfds_[vector].get() >= 0) {
            uint64_t one = 1;
            /* EAGAIN: the counter is full, so the client has a wake-up waiting anyway. */
            if (write(eventfds_[vector].get(), &one, sizeof(one)) < 0 && errno != EAGAIN)
                say(std::string("eventfd: ") + strerror(errno));
        }
    }
}

} // namespace dibber::vfio
