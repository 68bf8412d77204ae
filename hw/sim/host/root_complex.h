/* The host's side of PCIe: takes the card's TLPs to memory, completes its reads, carries the CPU's
 * accesses to BAR 0. Runs in the host's time, event by event; everything it does reaches the card
 * later by a stated latency, so that host and card can be simulated apart.
 *
 * Latencies are those of an idle machine from TLP stream to TLP stream. The link adds nothing to
 * them, it only spaces TLPs by their bytes; memory delays a write whose predecessor wrote part of a
 * line.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "../random.h"
#include "check.h"
#include "config_space.h"
#include "memory.h"
#include "phy.h"

namespace dibber {

class CardTimeline;

/* Events of a root complex for others, at the host time at which they happen. */
class HostListener {
public:
    virtual ~HostListener() = default;
    virtual void written(unsigned card, uint64_t address, uint64_t bytes) = 0;
    virtual void interrupt(unsigned card, unsigned vector) = 0;
};

struct HostStatistics {
    uint64_t writes = 0, write_bytes = 0, reads = 0, read_bytes = 0, completions_down = 0;
    uint64_t bar_writes = 0, bar_reads = 0, bar_read_errors = 0, bar_read_timeouts = 0,
             interrupts = 0;
    uint64_t memory_wait_ps = 0;
    Time first_write = never, last_write = 0; /* when its bytes were in memory */
    double busy_down_ps = 0;
    std::array<uint64_t, unsigned(Fault::count)> faults = {};
};

class RootComplex {
public:
    using BarAnswer = std::function<void(std::span<const uint8_t> bytes)>;

    static constexpr uint64_t bar_base = 0xd0000000;

    /* BAR 2 is above 4 GiB, as hosts place a prefetchable BAR of 64 bits. Offsets from
     * `aperture_offset` on are offsets in it. */
    static constexpr uint64_t aperture_base = 0xd800000000, aperture_offset = 1ull << 32;
    static constexpr uint64_t interrupt_base = 0xfee00000, interrupt_size = 0x100000;
    static constexpr uint16_t host_id = 0x0000, card_id = 0x0100;

    /* `now` is the host's time, kept by the scheduler. */
    RootComplex(const Profile& profile, unsigned card, uint64_t seed, const Time& now, Phy& phy,
                Memory& memory, HostListener& listener);

    /* Take the TLPs that have left the card since the last call. */
    void take(std::vector<Tlp>& departed);

    /* The time of the next work; and do the first of it, with `now` at that time. */
    Time next_event() const;
    void run_event();

    /* CPU accesses of BAR 0, and of BAR 2 behind `aperture_offset`, now. Writes are cut at 64 bytes
     * as a write-combining buffer does, reads at 8. One read of BAR 2 is under way at a time, as
     * uncached loads are. `answer` gets all ones for reads that the card
     * refuses or does not answer in time. */
    static constexpr uint64_t address_of(uint64_t offset)
    {
        return offset < aperture_offset ? bar_base + offset
                                        : aperture_base + (offset - aperture_offset);
    }
    void write_bar(uint64_t offset, std::span<const uint8_t> bytes);
    void read_bar(uint64_t offset, unsigned bytes, BarAnswer answer);
    /* What a write-combining buffer lets go: a line, or a word with its byte enables. */
    void write_combined(uint64_t offset, std::span<const uint8_t> bytes, uint64_t enables);

    /* Accesses of BAR 0 that have not reached the card yet. */
    size_t waiting() const { return bar_waiting_.size() + phy_.waiting(); }

    /* Forget all accesses under way; reads of the BAR return all ones. */
    void reset();

    /* MSI-X is on if it is enabled in configuration space, or if a client has given event
     * descriptors. */
    void set_interrupts(bool on) { interrupts_ = on; }
    bool msix_enable() const { return interrupts_ || config.msix_enable(); }

    CardTimeline* timeline = nullptr; /* if there is one */

    ConfigSpace config;
    const HostStatistics& statistics() const { return statistics_; }
    const Profile& profile() const { return profile_; }

    /* Earliest host time at which output of the card at time 0 can matter, and the reverse. */
    static Time lookahead_up(const Profile& profile);
    static Time lookahead_down(const Profile& profile);

private:
    /* Reads of the card that wait for their answer. A card has one for each of its 256 tags; more
     * are lost. */
    static constexpr size_t max_pool = 1024;

    struct Read { /* of the card, from memory */
        Tlp request;
        uint64_t address;
        unsigned bytes, done = 0;
        Time ready = 0;
        bool answered = false, good = false;
        std::vector<uint8_t> data;
    };
    struct BarRead {
        std::vector<uint8_t> data;
        unsigned missing;
        BarAnswer answer;
    };
    struct BarChunk {
        std::shared_ptr<BarRead> read;
        uint64_t offset;
        unsigned place, bytes, done = 0;
        Time deadline = 0;
    };

    void send_request(Tlp tlp, Time latency);
    void send(Tlp tlp, Time start, Time latency);
    void spoil(Tlp& tlp);
    void memory_write_arrives();
    void memory_read_arrives();
    void completion_arrives();
    void write_enabled(const Tlp& tlp);
    void write_run(uint64_t address, std::span<const uint8_t> bytes);
    Time completion_ready() const;
    Time next_completion() const;
    void send_completion();
    unsigned completion_bytes(const Read& read);
    void issue_bar_reads();
    void finish_chunk(unsigned tag);
    void expire_bar_reads();
    void fault(Fault fault, const Tlp& tlp);

    const Profile& profile_;
    const unsigned card_;
    const Time& now_;
    Phy& phy_;
    Memory& memory_;
    HostListener& listener_;
    Random random_, fault_random_;
    const Time posted_up_, posted_down_, read_up_, read_down_, credit_return_;

    bool interrupts_ = false;
    std::deque<Tlp> posted_, reads_,
        completions_; /* on the way up; `at` is when memory sees them */
    Time last_visible_ = 0, memory_free_ = 0;
    double down_free_ = 0;
    std::deque<std::shared_ptr<Read>> pool_;
    std::array<bool, 256> tag_in_flight_ = {};

    std::deque<BarChunk> bar_waiting_;
    std::array<BarChunk, 32> bar_active_ = {}; /* by tag */
    unsigned bar_in_flight_ = 0, bar_next_tag_ = 0, window_in_flight_ = 0;
    std::deque<std::pair<Time, unsigned>> bar_deadlines_;

    HostStatistics statistics_;
};

} // namespace dibber
