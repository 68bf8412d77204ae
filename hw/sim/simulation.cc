/* SPDX-License-Identifier: BSD-2-Clause */

#include "simulation.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "random.h"

namespace dibber {

namespace {

constexpr unsigned reset_length = 16;

/* With only clients of the clock nothing can come from outside while time passes, but a new client.
 */
constexpr unsigned quanta_between_looks = 256;

/* Rounds over the sockets before time goes on: a client that never stops sending must not stop the
 * others. */
constexpr unsigned max_rounds = 4096;

double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Seconds of CPU time that this process has used. */
double cpu_seconds()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/* Cycles that cards and hosts can run apart: see the head of simulation.h. A word sent in the first
 * cycle must not arrive before the last one. */
unsigned lookahead_cycles(const Profile& profile)
{
    Time up = RootComplex::lookahead_up(profile), down = RootComplex::lookahead_down(profile);
    Time period = profile.period();
    if (up < period || down < period)
        throw ProfileError("profile " + profile.name +
                           ": a PCIe latency is below one clock of the card");
    return unsigned(
        std::min((up + down - 1) / period, (profile.cable_delay() + period - 1) / period));
}

} // namespace

Simulation::Node::Node(const Profile& profile, std::unique_ptr<Device> card, bool trace)
    : device(std::move(card)), phy(profile, device->data_width(), device->big_endian(), trace),
      reset_cycles(reset_length)
{
}

Simulation::Simulation(const Profile& profile, const Options& options)
    : profile_(profile), options_(options), quantum_(lookahead_cycles(profile)),
      clock_(profile, options.participants, now_),
      looped_(std::any_of(options.faults.begin(), options.faults.end(),
                          [](auto& fault) { return fault.kind == CableFault::loopback; }))
{
    if (!options.tlp_trace.empty())
        trace_ = std::make_unique<TraceFile>(options.tlp_trace);
    for (unsigned n = 0; n < options.cards; n++) {
        auto device = make_device(options.device, n, profile, options.seed);
        if (!options.preload.empty() && n == 0) {
            if (device->sram_bytes() == 0)
                throw std::runtime_error("--preload: the device has no SRAM for it");
            preload_ = read_image(options.preload, device->sram_bytes());
        }
        nodes_.push_back(std::make_unique<Node>(profile, std::move(device), trace_ != nullptr));
        cables_.push_back(std::make_unique<Cable>(profile, options.seed, n, options.faults));
    }
    for (unsigned n = 0; n < options.cards; n++) {
        Node& node = *nodes_[n];
        node.host = std::make_unique<RootComplex>(profile, n, options.seed, now_, node.phy,
                                                  node.memory, *this);
        std::string socket = options.socket_directory + "/card" + std::to_string(n) + ".sock";
        if (!options.socket_directory.empty()) {
            node.server =
                std::make_unique<vfio::Server>(socket, n, *this, clock_, *node.host, node.memory);
            node.observers =
                std::make_unique<vfio::Observers>(socket + ".admin", n, *this, *node.host);
        }
        if (!options.record.empty())
            node.pins = std::make_unique<PinsWriter>(
                options.record + "/card" + std::to_string(n) + ".pins", n, options.seed);
        if (options.jtag)
            node.jtag = std::make_unique<Jtag>(options.socket_directory + "/card" +
                                               std::to_string(n) + ".jtag");
    }
    workers_ = std::make_unique<Workers>(options.cards, options.threads,
                                         [this](unsigned n) { run_card(n); });
}

Simulation::~Simulation() = default;

/* Time ----------------------------------------------------------------------------------------- */

void Simulation::schedule(Time at, unsigned card, unsigned endpoint, std::function<void()> action)
{
    actions_.emplace(ActionKey{at, card, endpoint, action_order_++}, std::move(action));
}

void Simulation::forget(unsigned card)
{
    std::erase_if(actions_, [card](auto& action) {
        return std::get<1>(action.first) == card && std::get<2>(action.first) <= DIBBER_ENDPOINTS;
    });
}

/* A debugger and an observer are no participants of the clock, and would hang on one that stands:
 * they have to look at a card whose program waits for somebody. So what they ask for makes time go
 * on whoever else holds it, and whoever does finds when it looks again that it was late. */
bool Simulation::watched() const
{
    return std::any_of(nodes_.begin(), nodes_.end(), [](auto& node) {
        return (node->jtag && node->jtag->pending()) ||
               (node->observers && node->observers->pending());
    });
}

bool Simulation::watcher_connected() const
{
    return std::any_of(nodes_.begin(), nodes_.end(), [](auto& node) {
        return (node->jtag && node->jtag->connected()) ||
               (node->observers && node->observers->connected());
    });
}

bool Simulation::blocked() const
{
    if (!clock_.may_run() && !watched())
        return true;
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](auto& node) { return node->server && node->server->stalls(); });
}

/* Events of all hosts before `horizon`, in order of time; equal times: cards, then programs, then
 * wake-ups. False when somebody's program must run first. */
bool Simulation::run_host(Time horizon)
{
    bool served = !options_.socket_directory.empty();
    for (;;) {
        RootComplex* first = nullptr;
        Time next = never;
        for (auto& node : nodes_) {
            Time at = node->host->next_event();
            if (at < next) {
                next = at;
                first = node->host.get();
            }
        }
        Time action = actions_.empty() ? never : std::get<0>(actions_.begin()->first);
        Time wake = clock_.next_wake();
        Time event = std::min({next, action, wake});
        if (event >= horizon)
            return true;
        now_ = std::max(now_, event);
        if (next == event) {
            first->run_event();
        } else if (action == event) {
            auto todo = std::move(actions_.begin()->second);
            actions_.erase(actions_.begin());
            todo();
        } else {
            clock_.wake();
        }
        if (served && blocked())
            return false;
    }
}

bool Simulation::step()
{
    Time last_cycle_and_up =
        cycle_ * profile_.period() + RootComplex::lookahead_up(profile_) - profile_.period();
    if (!run_host(last_cycle_and_up))
        return false;
    now_ = std::max(now_, last_cycle_and_up);
    run_cards();
    return true;
}

void Simulation::run_cards()
{
    for (auto& node : nodes_) {
        const ConfigSpace& config = node->host->config;
        node->in.pcie_id = RootComplex::card_id;
        node->in.pcie_max_payload = uint16_t(config.max_payload());
        node->in.pcie_max_request = uint16_t(config.max_read_request());
        node->in.pcie_extended_tags = config.extended_tags();
        node->in.pcie_msix_enable = node->host->msix_enable();
        node->in.pcie_bus_master = config.bus_master();
    }
    workers_->run();
    cycle_ += quantum_;
    for (unsigned n = 0; n < nodes_.size(); n++) {
        Node& node = *nodes_[n];
        node.host->take(node.phy.departed());
        /* A card alone has a cable that leads nowhere. */
        cables_[n]->meet(looped_ || nodes_.size() > 1);
        if (trace_)
            trace_->write(n, node.phy.trace());
    }
}

void Simulation::run_card(unsigned n)
{
    Node& node = *nodes_[n];
    Cable& leaving = *cables_[n];
    Cable* coming = looped_             ? &leaving
                    : nodes_.size() > 1 ? cables_[(n + 1) % nodes_.size()].get()
                                        : nullptr;
    const Time period = profile_.period();
    Time now = cycle_ * period;
    for (unsigned i = 0; i < quantum_; i++, now += period) {
        node.in.reset = node.reset_cycles > 0;
        node.reset_cycles -= node.in.reset;
        node.phy.drive(node.in, now);
        leaving.drive_transmit(node.in, now);
        if (coming)
            coming->drive_receive(node.in, now);
        if (node.out.serial_loopback)
            leaving.drive_loopback(node.in, now);
        if (node.jtag)
            node.jtag->drive(node.in);
        node.device->settle(node.in, node.out);
        if (node.pins)
            node.pins->write(node.powered, node.in, node.out);
        if (node.jtag)
            node.jtag->sample(node.out);
        if (!node.in.reset) {
            node.phy.sample(node.in, node.out, now);
            leaving.sample_transmit(node.in, node.out, now);
        }
        node.device->clock(node.in);
        /* Only now is no store of the last program under way any more. */
        if (node.in.reset && node.reset_cycles == 0 && !preload_.body.empty())
            node.device->preload(preload_.body);
    }
}

void Simulation::reset_card(unsigned card)
{
    if (options_.reset_takes_power) {
        nodes_[card]->device = make_device(options_.device, card, profile_, options_.seed);
        nodes_[card]->powered++;
    }
    nodes_[card]->phy.reset();
    nodes_[card]->host->reset();
    nodes_[card]->reset_cycles = reset_length;
}

uint32_t Simulation::drawn_for(unsigned card) const
{
    Random random(options_.seed, 0x300 + card + (uint64_t(nodes_[card]->powered) << 32));
    return uint32_t(1 + random.below(UINT32_MAX));
}

uint32_t Simulation::preloaded() const { return preload_.crc; }

void Simulation::written(unsigned card, uint64_t address, uint64_t bytes)
{
    clock_.written(card, address, bytes);
}

void Simulation::interrupt(unsigned card, unsigned vector)
{
    if (nodes_[card]->server)
        nodes_[card]->server->interrupt(vector);
}

/* Clients -------------------------------------------------------------------------------------- */

void Simulation::serve(int timeout_ms)
{
    std::vector<pollfd> list;
    for (auto& node : nodes_) {
        node->server->add_to(list);
        node->observers->add_to(list);
        if (node->jtag)
            node->jtag->add_to(list);
    }
    if (poll(list.data(), nfds_t(list.size()), timeout_ms) > 0) {
        quiet_since_ = cycle_;
        bool busy = false;
        for (auto& node : nodes_) {
            busy |= node->server->serve();
            node->observers->serve();
            if (node->jtag)
                node->jtag->serve();
        }
        /* A thread with two cards sends by two sockets. What it sent to one card before it waited
         * on the other is in its socket by now, and has to be read before time goes on. */
        for (unsigned n = 0; busy && n < max_rounds && clock_.shares_thread(); n++) {
            busy = false;
            for (auto& node : nodes_)
                busy |= node->server->serve();
        }
    }
}

/* Time stands until a message comes. Somebody who holds it for long is named: most likely a program
 * that blocks elsewhere without leaving the clock. */
void Simulation::wait_for_clients()
{
    serve(100);
    if (!blocked()) {
        standing_since_ = 0;
        return;
    }
    double now = seconds();
    if (standing_since_ == 0)
        standing_since_ = now;
    if (now - standing_since_ > options_.watchdog_seconds) {
        fprintf(stderr, "dibber-sim: time has stood for %u s: %s\n", options_.watchdog_seconds,
                holder().c_str());
        standing_since_ = now;
    }
}

std::string Simulation::clock_state() const
{
    if (blocked())
        return "time stands: " + holder();
    std::string missing = clock_.missing();
    return missing.empty() ? "time goes on" : "time goes on: " + missing;
}

std::string Simulation::holder() const
{
    for (size_t n = 0; n < nodes_.size(); n++)
        if (nodes_[n]->server->stalls())
            return "the client of card" + std::to_string(n) + " does not answer for its memory";
    return clock_.holder();
}

/* A client without the clock, such as a virtual machine, needs the processor more than an idle card
 * does; yet time must go on. */
void Simulation::rest_when_idle()
{
    uint64_t traffic = 0;
    for (auto& node : nodes_)
        traffic += node->phy.statistics().tlps_up + node->phy.statistics().tlps_down;
    if (traffic != traffic_) {
        traffic_ = traffic;
        quiet_since_ = cycle_;
    }
    constexpr uint64_t quiet_cycles = 200000, quanta_between_rests = 8;
    bool rest = cycle_ - quiet_since_ > quiet_cycles && quanta_ % quanta_between_rests == 0;
    serve(rest ? 1 : 0);
}

void Simulation::run(const std::atomic<bool>& stop)
{
    while (!stop && !(options_.exit_when_done && clock_.finished())) {
        if (blocked()) {
            wait_for_clients();
            continue;
        }
        if (clock_.any_free())
            rest_when_idle();
        else if (quanta_ % quanta_between_looks == 0 || watcher_connected())
            serve(0);
        if (blocked())
            continue;
        double start = seconds(), cpu_start = cpu_seconds();
        quanta_++;
        step();
        running_seconds_ += seconds() - start;
        cpu_seconds_ += cpu_seconds() - cpu_start;
    }
}

void Simulation::run_until(Time time)
{
    double start = seconds(), cpu_start = cpu_seconds();
    while (cycle_ * profile_.period() <= time)
        step();
    running_seconds_ += seconds() - start;
    cpu_seconds_ += cpu_seconds() - cpu_start;
}

} // namespace dibber
