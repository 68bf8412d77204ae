/* SPDX-License-Identifier: BSD-2-Clause */

#include "connection.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dibber::vfio {

namespace {

/* SCM_MAX_FD of Linux, the limit of one message. */
constexpr size_t max_descriptors = 253;

/* A client that sends requests and never reads the answers is cut off here. */
constexpr size_t max_unsent = size_t(64) << 20;

/* Bytes at the front of the buffer that were sent and are still there. */
constexpr size_t max_sent = size_t(1) << 20;

} // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept
{
    if (this != &other) {
        if (fd_ >= 0)
            ::close(fd_);
        fd_ = other.release();
    }
    return *this;
}

Descriptor::~Descriptor()
{
    if (fd_ >= 0)
        ::close(fd_);
}

int Descriptor::release()
{
    int fd = fd_;
    fd_ = -1;
    return fd;
}

Connection::Result Connection::close(std::string why)
{
    why_ = std::move(why);
    return Result::closed;
}

/* Descriptors travel with the first byte of their message. So reading the header alone never takes
 * descriptors of the next message. */
Connection::Result Connection::read_into(uint8_t* to, size_t bytes, size_t& have)
{
    alignas(cmsghdr) char control[CMSG_SPACE(max_descriptors * sizeof(int))];
    while (have < bytes) {
        iovec piece = {to + have, bytes - have};
        msghdr message = {};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        ssize_t n = recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return Result::nothing;
        if (n < 0)
            return close(strerror(errno));
        for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                continue;
            for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                int received;
                memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                partial_.descriptors.emplace_back(received);
            }
        }
        if (partial_.descriptors.size() > max_descriptors)
            return close("a message with more than " + std::to_string(max_descriptors) +
                         " descriptors");
        if (n == 0)
            return close(have || header_bytes_ ? "closed inside a message" : "closed");
        have += size_t(n);
    }
    return Result::message;
}

Connection::Result Connection::receive(Message& message)
{
    Header& header = partial_.header;
    Result result = read_into(reinterpret_cast<uint8_t*>(&header), sizeof(Header), header_bytes_);
    if (result != Result::message)
        return result;
    if (header.size < sizeof(Header) || header.size > max_message)
        return close("message of " + std::to_string(header.size) + " bytes");
    partial_.payload.resize(header.size - sizeof(Header));
    result = read_into(partial_.payload.data(), partial_.payload.size(), payload_bytes_);
    if (result != Result::message)
        return result;
    message = std::move(partial_);
    partial_ = {};
    header_bytes_ = payload_bytes_ = 0;
    return Result::message;
}

void Connection::send(const Header& header, std::span<const uint8_t> first,
                      std::span<const uint8_t> second)
{
    auto add = [&](std::span<const uint8_t> bytes) {
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    };
    Header out = header;
    out.size = uint32_t(sizeof(Header) + first.size() + second.size());
    add({reinterpret_cast<const uint8_t*>(&out), sizeof(out)});
    add(first);
    add(second);
    flush();
}

bool Connection::flush()
{
    while (sent_ < out_.size()) {
        ssize_t n =
            ::send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            bool later = errno == EAGAIN || errno == EWOULDBLOCK;
            /* A client that is always a little behind must not make the buffer grow. */
            if (sent_ > max_sent) {
                out_.erase(out_.begin(), out_.begin() + long(sent_));
                sent_ = 0;
            }
            return later && !overfull();
        }
        sent_ += size_t(n);
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool Connection::overfull() const { return out_.size() - sent_ > max_unsent; }

void refuse(const Descriptor& socket)
{
    Header answer = {0, version, sizeof(Header), type_reply | error_flag, EBUSY};
    /* A client that has gone meanwhile needs no answer. */
    ::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Listening ------------------------------------------------------------------------------------ */

int listen_on(const std::string& path)
{
    auto fail = [&](const std::string& why) -> int {
        throw std::runtime_error("socket " + path + ": " + why);
    };
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        return fail("the path is longer than " + std::to_string(sizeof(address.sun_path) - 1) +
                    " bytes");
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd.get(), generic, sizeof(address)) < 0) {
        if (errno != EADDRINUSE)
            return fail(strerror(errno));
        /* Left behind by a simulator that died, or a living one? */
        Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (connect(probe.get(), generic, sizeof(address)) == 0 || errno != ECONNREFUSED)
            return fail("in use by another program");
        if (unlink(path.c_str()) < 0 || bind(fd.get(), generic, sizeof(address)) < 0)
            return fail(strerror(errno));
    }
    if (listen(fd.get(), 4) < 0)
        return fail(strerror(errno));
    return fd.release();
}

} // namespace dibber::vfio
