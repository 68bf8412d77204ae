/* One client's socket: whole messages with their file descriptors in, messages out, never blocking.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol.h"

namespace dibber::vfio {

/* A file descriptor that closes itself. */
class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();

    int get() const { return fd_; }
    int release();

private:
    int fd_;
};

struct Message {
    Header header;
    std::vector<uint8_t> payload;
    std::vector<Descriptor> descriptors;
};

class Connection {
public:
    explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}

    enum class Result { message, nothing, closed };

    /* The next whole message. `closed` if the client has gone or sent an impossible message; why()
     * then says which. */
    Result receive(Message& message);

    /* Queue a message and send what the socket takes. */
    void send(const Header& header, std::span<const uint8_t> first,
              std::span<const uint8_t> second = {});
    bool flush();
    /* The client takes no answers: the unsent bytes exceed the limit. */
    bool overfull() const;
    bool sending() const { return sent_ < out_.size(); }

    int fd() const { return socket_.get(); }
    const std::string& why() const { return why_; }

private:
    Result read_into(uint8_t* to, size_t bytes, size_t& have);
    Result close(std::string why);

    Descriptor socket_;
    Message partial_ = {};
    size_t header_bytes_ = 0, payload_bytes_ = 0;
    std::vector<uint8_t> out_;
    size_t sent_ = 0;
    std::string why_;
};

/* Refuse a client with EBUSY, as the answer to its VERSION. It may not have sent VERSION yet, so
 * the answer has the ID 0, libdibber's first ID. The caller closes the socket. */
void refuse(const Descriptor& socket);

/* A socket that listens on `path`, never blocking; throws std::runtime_error that names it. A
 * socket that a dead simulator left behind is taken over. */
int listen_on(const std::string& path);

} // namespace dibber::vfio
