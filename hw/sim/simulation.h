/* The cards, their hosts and the cable in one process, and the order in which time passes for each.
 *
 * A card runs in its own clock cycles, its host in events. What a card emits reaches its host at
 * least RootComplex::lookahead_up later, what a host does reaches the card lookahead_down later,
 * and a word takes the delay of the cable to the other card. So hosts go first, up to where they
 * can be sure of the cards; then all cards run `quantum` cycles at once, each in its thread; then
 * they meet. No step looks at another thread's unfinished work, and so the result does not depend
 * on how threads are scheduled.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cable/cable.h"
#include "clock/clock.h"
#include "device.h"
#include "host/root_complex.h"
#include "jtag/jtag.h"
#include "pins.h"
#include "preload.h"
#include "trace.h"
#include "vfio/observers.h"
#include "vfio/server.h"
#include "workers.h"

namespace dibber {

struct Options {
    std::string profile, socket_directory, device, tlp_trace, stats, record, preload;
    std::vector<std::string> overrides;
    unsigned cards = 2, participants = 2, threads = 2, watchdog_seconds = 30;
    uint64_t seed = 1;
    std::vector<CableFault> faults;
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

    Device& device(unsigned card) { return *nodes_[card]->device; }
    Memory& memory(unsigned card) { return nodes_[card]->memory; }
    RootComplex& host(unsigned card) { return *nodes_[card]->host; }

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
    struct Node {
        Node(const Profile& profile, std::unique_ptr<Device> card, bool trace);

        std::unique_ptr<Device> device;
        Phy phy;
        Memory memory;
        std::unique_ptr<RootComplex> host;
        std::unique_ptr<vfio::Server> server;
        std::unique_ptr<vfio::Observers> observers;
        std::unique_ptr<Jtag> jtag;
        std::unique_ptr<PinsWriter> pins;
        Inputs in;
        Outputs out;
        unsigned reset_cycles;
        unsigned powered = 0; /* how often it has lost power */
    };
    using ActionKey =
        std::tuple<Time, unsigned, unsigned, uint64_t>; /* …, card, endpoint, order of arrival */

    bool step();
    bool run_host(Time horizon);
    void run_cards();
    void run_card(unsigned card);
    bool blocked() const;
    bool watched() const;
    bool watcher_connected() const;
    void serve(int timeout_ms);
    void wait_for_clients();
    void rest_when_idle();
    std::string holder() const;

    const Profile& profile_;
    const Options& options_;
    FirmwareImage preload_ = {}; /* without a body: none */
    Time now_ = 0;               /* of the hosts */
    uint64_t cycle_ = 0;         /* of the cards: next to run */
    unsigned quantum_;
    Clock clock_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<std::unique_ptr<Cable>> cables_; /* [n] leaves card n */
    bool looped_;                                /* each card hears itself */
    std::map<ActionKey, std::function<void()>> actions_;
    uint64_t action_order_ = 0;
    std::unique_ptr<TraceFile> trace_;
    std::unique_ptr<Workers> workers_;

    uint64_t traffic_ = 0, quiet_since_ = 0, quanta_ = 0;
    double running_seconds_ = 0, cpu_seconds_ = 0, standing_since_ = 0;
};

} // namespace dibber
