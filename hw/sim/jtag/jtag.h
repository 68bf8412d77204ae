/* OpenOCD's way to a card's JTAG pins: its protocol remote_bitbang, on a UNIX socket.
 *
 * The protocol has one character for each step: '0' to '7' are levels of TCK, TMS and TDI (4, 2,
 * 1), 'R' requests TDO's level, 'Q' ends the session; LED and reset are taken and ignored. A level
 * takes a cycle of the card, because the card's test access port sees each level. TDO is sampled
 * when it has had time to answer a level, while other levels follow. So JTAG has a place in
 * simulated time, and characters that wait make time go on: see Simulation::blocked().
 *
 * serve() is for the thread that meets clients; drive() and sample() are for the card's. They never
 * run at once.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <poll.h>

#include "../device.h"

namespace dibber {

class Jtag {
public:
    /* Listen at `path`; throws std::runtime_error. */
    explicit Jtag(const std::string& path);
    ~Jtag();
    Jtag(const Jtag&) = delete;
    Jtag& operator=(const Jtag&) = delete;

    void add_to(std::vector<pollfd>& list) const;

    /* Take the received characters, up to `max_waiting`, because OpenOCD gives up when its socket
     * is full; send the sampled levels. */
    void serve();

    bool connected() const { return client_ >= 0; }

    /* Characters wait, or an answer. */
    bool pending() const
    {
        return client_ >= 0 && (!steps_.empty() || asked_ || !answers_.empty());
    }

    /* A cycle of the card. */
    void drive(Inputs& in);
    void sample(const Outputs& out);

private:
    /* Characters that wait, and answers that are not taken. OpenOCD sends an image of 32 KiB in
     * some 2 million. */
    static constexpr size_t max_waiting = size_t(64) << 20;

    void receive();
    void send();
    void hang_up();

    std::string path_;
    int listener_ = -1, client_ = -1;
    std::deque<char> steps_;
    std::string answers_;
    unsigned level_ = 0; /* TCK, TMS, TDI */
    uint32_t asked_ = 0; /* bit n: TDO was requested after the level that was driven n cycles ago */
};

} // namespace dibber
