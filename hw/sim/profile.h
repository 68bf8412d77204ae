/* A machine and its link, as read from a profile. The files of hw/sim/profiles explain each value.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "units.h"

namespace dibber {

struct ProfileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* The way in which a read is cut into completions. */
enum class CompletionSplit {
    boundary, /* at every read completion boundary: 64-byte completions */
    maximum,  /* as few as the maximum payload allows */
    random,   /* at a read completion boundary or not, by the seed */
};

struct Profile {
    std::string name;

    struct Card {
        double clock_mhz;
        unsigned data_width;
    } card;

    struct Pcie {
        unsigned lanes;
        double rate_gbps;
        double overhead_percent;
        unsigned framing_bytes;
        unsigned max_payload;
        unsigned max_read_request;
        unsigned read_completion_boundary;
        double read_latency_ns;
        double posted_up_ns;
        double posted_down_ns;
        unsigned posted_headers;
        unsigned posted_data;
        unsigned nonposted_headers;
        double credit_return_ns;
        bool extended_tags;
        unsigned transmit_buffer_tlps;
        unsigned transmit_buffer_bytes;
        double completion_timeout_us;
        CompletionSplit completion_split;
        double completion_reorder_ns;
        double completion_fault_rate; /* share of completions with a fault, by the seed; 0 if the
                                         file has none */
    } pcie;

    struct Memory {
        double partial_line_ns;
        unsigned line_bytes;
    } memory;

    struct Link {
        double rate_gbps;
        double length_m;
        double delay_ns_per_m;
        double transmit_ns;
        double receive_ns;
        double bit_error_rate;
        unsigned mtu;   /* bytes of payload of a frame: the link is Ethernet; 0: it is serial */
        unsigned peers; /* other cards that a link over Ethernet may have */
        unsigned bulk_width;         /* bits of a word of channel BULK: 32, or over Ethernet 64 */
        double frame_loss;           /* share of frames that are lost, by the seed */
        double frame_late;           /* share of frames that the next one overtakes, by the seed */
        unsigned switch_queue_bytes; /* of each output of an Ethernet switch */
        double skew_ns;              /* of a bonded link: the last lane is later than lane 0 */
        std::string fabric;          /* "direct", "two-links" (a card has two ports), "ring"
                                      * (each card is a node), "ring-pair", or "bonded" (four
                                      * lanes in 64b/66b) */
    } link;

    /* Of the CPU. The times in `cpu` are computed with it. */
    static constexpr double instructions_per_ns = 4.5;

    struct Cpu {
        double put_ns;
        double put_strided_ns;
        double poll_empty_ns;
        double poll_entry_ns;
        double mailbox_send_ns;
        double mailbox_receive_ns;
        double mailbox_empty_ns;
    } cpu;

    /* What the CPU does to its stores to the remote window: host/write_combiner.h. */
    struct Window {
        unsigned combining_buffers;
        double line_ns;  /* between two lines that leave them */
        double store_ns; /* an instruction */
    } window;

    /* Cost of a copy on the CPU: a line loaded or stored after its neighbour, and the first line of
     * each side. */
    struct Copy {
        double element_ns;
        double line_ns;
        double far_load_ns;
        double far_store_ns;
    } copy;

    /* Period of the card's clock. */
    Time period() const { return Time(1e6 / card.clock_mhz + 0.5); }

    bool is_ring() const { return link.fabric == "ring"; }

    /* Each card is on two rings that go opposite ways, and has two cables. */
    bool is_pair() const { return link.fabric == "ring-pair"; }

    /* `link.rate_gbps` is that of each lane. */
    bool is_bonded() const { return link.fabric == "bonded"; }

    bool has_two_links() const { return link.fabric == "two-links"; }

    unsigned card_ports() const { return is_pair() || has_two_links() ? 2 : 1; }

    /* Picoseconds that a TLP of `header` + `payload` bytes holds one direction of PCIe. */
    double pcie_ps(unsigned bytes) const
    {
        return (bytes + pcie.framing_bytes) * pcie_ps_per_byte_;
    }

    /* From the serial PHY boundary of one end to that of the other, by a cable of so many metres.
     */
    Time cable_delay(double length_m) const
    {
        return from_ns(link.transmit_ns + link.receive_ns + length_m * link.delay_ns_per_m);
    }

    /* CPU time of `count` calls of kind `call` (enum call of the interface), or `never` for no such
     * call. 0 is no call: `count` instructions. */
    Time cpu_time(uint32_t call, uint32_t count) const;

    /* Called by read_profile: checks combinations of values. */
    void finish();

private:
    Time copy_time(uint32_t bytes) const;

    double pcie_ps_per_byte_ = 0;
};

/* Read `path`; each of `overrides` is "table.key=value". Throws ProfileError, which names file and
 * key. */
Profile read_profile(const std::string& path, const std::vector<std::string>& overrides = {});

} // namespace dibber
