/* Cards, their hosts, switches and cables in one process, and the order in which time passes for
 * each.
 *
 * Cards and switches are units (unit.h). A unit runs in cycles of the clock, a host in events. What
 * a card emits reaches its host at least RootComplex::lookahead_up later. What a host does reaches
 * the card at least lookahead_down later. A word takes the delay of its cable to another unit. So
 * hosts go first, up to where they can be sure of the cards. Then all units run `quantum` cycles,
 * and meet. The quantum is the delay of the shortest cable, or less where PCIe or an event of the
 * script asks for less. No step looks at the unfinished work of another unit. Therefore the result
 * depends neither on the number of threads nor on how they are scheduled.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cable/cable.h"
#include "clock/clock.h"
#include "device.h"
#include "host/root_complex.h"
#include "jtag/jtag.h"
#include "preload.h"
#include "script.h"
#include "timeline/timeline.h"
#include "topology.h"
#include "trace.h"
#include "unit.h"
#include "vfio/observers.h"
#include "vfio/server.h"
#include "workers.h"

namespace dibber {

struct Options {
    std::string profile, socket_directory, device, tlp_trace, timeline, stats, record, preload,
        pcap;
    std::string topology; /* a file; none: `cards`, and the cable of one or between two */
    std::vector<std::string> overrides;
    unsigned cards = 2, watchdog_seconds = 30;
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::optional<unsigned> participants; /* none: one a card */
    uint64_t seed = 1;
    std::vector<NamedFault> faults;
    std::vector<Event> events;
    bool exit_when_done = false, jtag = false, reset_takes_power = false;
};

class Simulation : public vfio::Simulation, public HostListener {
public:
    /* Without a socket directory there are no servers: run_until() drives it. Throws
     * std::runtime_error. */
    Simulation(const Profile& profile, const Options& options);
    ~Simulation() override;

    /* Serve clients until `stop` or, if asked for, until all participants have gone. */
    void run(const std::atomic<bool>& stop);

    /* Without clients: until the cards' clocks have passed `time`. */
    void run_until(Time time);

    Device& device(unsigned card) { return nodes_[card]->unit->device(); }
    Memory& memory(unsigned card) { return nodes_[card]->memory; }
    RootComplex& host(unsigned card) { return *nodes_[card]->host; }

    /* End the file of --timeline, if there is one. Throws std::runtime_error if it is not whole. */
    void close_timeline();

    /* As written to the file of --stats. */
    std::string statistics() const;

    /* vfio::Simulation and HostListener */
    void schedule(Time at, unsigned card, unsigned endpoint, std::function<void()> action) override;
    void forget(unsigned card) override;
    void reset_card(unsigned card) override;
    uint32_t drawn_for(unsigned card) const override;
    uint32_t preloaded() const override;
    Time now() const override { return now_; }
    std::string clock_state() const override;
    void written(unsigned card, uint64_t address, uint64_t bytes) override;
    void interrupt(unsigned card, unsigned vector) override;

private:
    /* A card with its host, and those who talk to it. */
    struct Node {
        CardUnit* unit = nullptr;
        Memory memory;
        std::unique_ptr<RootComplex> host;
        std::unique_ptr<vfio::Server> server;
        std::unique_ptr<vfio::Observers> observers;
    };
    using ActionKey =
        std::tuple<Time, unsigned, unsigned, uint64_t>; /* …, card, endpoint, order of arrival */

    std::vector<SerialPort> make_ports(unsigned unit);
    std::unique_ptr<CardUnit> make_card(unsigned card, std::vector<SerialPort> ports);
    void join_cables();
    void offer(unsigned card);
    unsigned lookahead_cycles() const;
    uint64_t next_power_cycle() const;
    bool apply_power();
    bool step();
    bool run_host(Time horizon);
    void run_units();
    void write_frames();
    bool blocked() const;
    bool watched() const;
    bool watcher_connected() const;
    nlohmann::ordered_json cable_statistics() const;
    void show_all();
    void show_programs();
    void serve(int timeout_ms);
    void wait_for_clients();
    void rest_when_idle();
    std::string holder() const;

    const Profile& profile_;
    const Options& options_;
    const Topology topology_;
    const Schedule schedule_;
    size_t next_power_ = 0;      /* of the schedule's events of power */
    FirmwareImage preload_ = {}; /* without a body: none */
    Time now_ = 0;               /* of the hosts */
    uint64_t cycle_ = 0;         /* of the cards: next to run */
    const unsigned quantum_;
    unsigned cycles_ = 0; /* of the step that the units make */
    Clock clock_;
    std::vector<std::unique_ptr<Unit>> units_; /* cards first, in order of their numbers */
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<ActionKey, std::function<void()>> actions_;
    uint64_t action_order_ = 0;
    std::unique_ptr<TraceFile> trace_;
    std::unique_ptr<Timeline> timeline_;
    std::unique_ptr<PcapFile> pcap_;
    std::vector<CarriedFrame> frames_; /* for it */
    std::unique_ptr<Workers> workers_;

    uint64_t traffic_ = 0, quiet_since_ = 0, quanta_ = 0;
    double running_seconds_ = 0, cpu_seconds_ = 0, standing_since_ = 0;
};

} // namespace dibber
