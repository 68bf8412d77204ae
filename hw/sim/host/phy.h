/* The card's PCIe block: beats on one side, TLPs with times on the other. Runs with the card's
 * clock.
 *
 * Transmit: a TLP is collected beat by beat and waits in a small buffer until the link is free and
 * the host has given credit; then it holds the link for its bytes. Posted TLPs and completions
 * overtake reads that lack credit (PCIe Base 3.0, table 2-39); no other TLPs overtake. Receive:
 * TLPs appear at their times, beat by beat, as fast as the stream and `ready` allow.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdio>
#include <deque>
#include <vector>

#include "../device.h"
#include "tlp.h"

namespace dibber {

class CardTimeline;

/* One TLP of a trace: `up` is from card to host. */
struct TraceRecord {
    Time at;
    bool up;
    std::vector<uint32_t> dw;
    unsigned header_dws;
};

struct PhyStatistics {
    uint64_t tlps_up = 0, bytes_up = 0, tlps_down = 0, bytes_down = 0;
    uint64_t stream_errors = 0;      /* beats that contradict the header: dropped TLPs */
    uint64_t byte_enable_errors = 0; /* `be` of a beat does not mark just the TLP's DWs */
    uint64_t not_ready_cycles = 0;   /* the card had a beat and `ready` was low */
    uint64_t credit_wait_ps = 0;     /* the link idle, a TLP waiting for credit */
    uint64_t stalled_cycles = 0;     /* the card did not take an offered beat */
    double busy_up_ps = 0;
};

class Phy {
public:
    Phy(const Profile& profile, unsigned data_width, bool big_endian, bool trace);

    /* Each cycle, with its clock edge at `now`: first the card's inputs, then its outputs. */
    void drive(Inputs& in, Time now);
    void sample(const Inputs& in, const Outputs& out, Time now);

    /* From the host, in order of time. */
    void deliver(Tlp tlp);
    void return_posted(Time at, unsigned data_units);
    void return_nonposted(Time at);

    /* TLPs on their way to the card. */
    size_t waiting() const { return rx_queue_.size(); }

    /* TLPs that have left since the last call; `at` is when their first byte was on the link. */
    std::vector<Tlp>& departed() { return departed_; }

    /* Forget all TLPs under way and take all credits back. TLPs on the host's side are dropped. */
    void reset();

    CardTimeline* timeline = nullptr; /* if there is one */

    const PhyStatistics& statistics() const { return statistics_; }
    std::vector<TraceRecord>& trace() { return trace_records_; }

private:
    struct Credit {
        Time at;
        unsigned headers, data;
    };
    struct Credits {
        unsigned headers, data;
        std::deque<Credit> returning;
    };

    void collect(const Outputs& out, Time now);
    void transmit(Time now);
    bool credit(Credits& credits, unsigned headers, unsigned data, Time& start, Time now);
    void record(const Tlp& tlp, bool up, Time at);

    const Profile& profile_;
    const unsigned beat_dws_;
    const bool big_endian_, tracing_;

    Tlp collecting_;
    bool in_tlp_ = false, broken_ = false;
    bool offered_ = false;   /* the first beat of a TLP is at the boundary, and was not taken yet */
    unsigned barred_cycles_; /* since Bus Master Enable was cleared; 0 while it is set */
    std::deque<Tlp> tx_queue_;
    std::deque<std::pair<Time, unsigned>>
        tx_held_; /* in the buffer until they have left: time, bytes */
    unsigned buffer_tlps_ = 0, buffer_bytes_ = 0;
    double link_free_ = 0;
    Credits posted_, nonposted_;
    std::vector<Tlp> departed_;

    std::deque<Tlp> rx_queue_;
    Time rx_last_ = 0;
    unsigned rx_position_ = 0;

    PhyStatistics statistics_;
    std::vector<TraceRecord> trace_records_;
};

} // namespace dibber
