/* SPDX-License-Identifier: BSD-2-Clause */

#include "jtag.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dibber {

namespace {

/* Cycles of gateware/dibber/debug/tap.py from TCK's fall to TDO. TDO then stays until TCK has
 * fallen again. */
constexpr unsigned cycles_to_tdo = 3;

} // namespace

Jtag::Jtag(const std::string& path) : path_(path)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        throw std::runtime_error("socket " + path + ": the name is too long");
    std::copy(path.begin(), path.end(), address.sun_path);
    unlink(path.c_str());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener_ < 0 ||
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0 ||
        listen(listener_, 1) < 0) {
        std::string reason = strerror(errno);
        if (listener_ >= 0)
            close(listener_);
        throw std::runtime_error("socket " + path + ": " + reason);
    }
}

Jtag::~Jtag()
{
    hang_up();
    close(listener_);
    unlink(path_.c_str());
}

void Jtag::add_to(std::vector<pollfd>& list) const
{
    short wanted = steps_.size() < max_waiting ? POLLIN : 0;
    list.push_back(
        {client_ >= 0 ? client_ : listener_, short(wanted | (answers_.empty() ? 0 : POLLOUT)), 0});
}

void Jtag::serve()
{
    if (client_ < 0)
        client_ = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client_ >= 0)
        receive();
    if (client_ >= 0)
        send();
}

void Jtag::receive()
{
    char buffer[4096];
    while (steps_.size() < max_waiting) {
        ssize_t got = recv(client_, buffer, sizeof(buffer), 0);
        if (got > 0) {
            steps_.insert(steps_.end(), buffer, buffer + got);
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            hang_up();
        return;
    }
}

void Jtag::send()
{
    if (answers_.empty())
        return;
    ssize_t sent = ::send(client_, answers_.data(), answers_.size(), MSG_NOSIGNAL);
    if (sent > 0)
        answers_.erase(0, size_t(sent));
    else if (answers_.size() > max_waiting || (sent < 0 && errno != EAGAIN && errno != EINTR))
        hang_up();
}

void Jtag::hang_up()
{
    if (client_ >= 0)
        close(client_);
    client_ = -1;
    steps_.clear();
    answers_.clear();
    asked_ = 0;
}

void Jtag::drive(Inputs& in)
{
    asked_ <<= 1;
    bool driven = false;
    while (!steps_.empty()) {
        char step = steps_.front();
        if (step >= '0' && step <= '7') {
            if (driven)
                break;
            level_ = unsigned(step - '0');
            driven = true;
        } else if (step == 'R') {
            asked_ |= 1;
        }
        steps_.pop_front();
    }
    in.jtag_tck = level_ & 4;
    in.jtag_tms = level_ & 2;
    in.jtag_tdi = level_ & 1;
}

void Jtag::sample(const Outputs& out)
{
    if (asked_ >> cycles_to_tdo & 1) {
        answers_ += out.jtag_tdo ? '1' : '0';
        asked_ &= ~(1u << cycles_to_tdo);
    }
}

} // namespace dibber
