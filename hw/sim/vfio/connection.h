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

    /* The next whole message. `closed` when the client has gone or sent what cannot be a message;
     * why() then says which. */
    Result receive(Message& message);

    /* Queue a message and send what the socket takes. */
    void send(const Header& header, std::span<const uint8_t> first,
              std::span<const uint8_t> second = {});
    bool flush();
    /* The client takes no answers: what is left to send is more than is kept for it. */
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

/* Tell a client that there is no room for it: EBUSY, as the answer to its VERSION. It may not have
 * sent that yet, so the answer has the ID 0, which is the first of libdibber. The caller closes the
 * socket. */
void refuse(const Descriptor& socket);

/* A socket that listens on `path`, never blocking; throws std::runtime_error that names it. One
 * that was left behind by a simulator that died is taken over. */
int listen_on(const std::string& path);

} // namespace dibber::vfio
