/* SPDX-License-Identifier: BSD-2-Clause */

#include "simulation.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "ethernet_switch.h"
#include "random.h"

namespace dibber {

namespace {

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

Topology topology_of(const Options& options, const Profile& profile)
{
    return options.topology.empty() ? cabled_cards(options.cards, profile)
                                    : read_topology(options.topology, profile);
}

} // namespace

Simulation::Simulation(const Profile& profile, const Options& options)
    : profile_(profile), options_(options), topology_(topology_of(options, profile)),
      schedule_(make_schedule(topology_, options.faults, options.events)),
      quantum_(lookahead_cycles()),
      clock_(profile, options.participants.value_or(topology_.cards), now_)
{
    if (!options.tlp_trace.empty())
        trace_ = std::make_unique<TraceFile>(options.tlp_trace);
    if (!options.pcap.empty() && profile.link.mtu == 0)
        throw std::runtime_error("--pcap: the link of profile " + profile.name +
                                 " is serial, only frames are written");
    if (!options.pcap.empty())
        pcap_ = std::make_unique<PcapFile>(options.pcap);
    for (unsigned unit = 0; unit < topology_.units(); unit++) {
        auto ports = make_ports(unit);
        if (unit < topology_.cards)
            units_.push_back(make_card(unit, std::move(ports)));
        else
            units_.push_back(std::make_unique<SwitchUnit>(profile, std::move(ports), [this, unit] {
                if (profile_.link.mtu != 0)
                    return std::unique_ptr<SwitchDevice>(std::make_unique<EthernetSwitch>(
                        topology_.ports(unit), profile_.link.switch_queue_bytes));
                /* 0 is what a register of a part that is not there reads. */
                uint32_t identity = unit - topology_.cards + 1;
                return make_switch(topology_.name(unit), topology_.ports(unit), profile_, identity);
            }));
    }
    join_cables();
    for (unsigned card = 0; card < topology_.cards; card++)
        offer(card);
    if (!options.timeline.empty())
        show_all();
    workers_ =
        std::make_unique<Workers>(unsigned(units_.size()), options.threads,
                                  [this](unsigned unit) { units_[unit]->run(cycle_, cycles_); });
}

/* Ports with their own ends of cables, not joined yet. */
std::vector<SerialPort> Simulation::make_ports(unsigned unit)
{
    std::vector<SerialPort> ports(topology_.ports(unit));
    for (size_t n = 0; n < topology_.cables.size(); n++) {
        const Topology::Cable& cable = topology_.cables[n];
        for (unsigned direction = 0; direction < cable.directions(); direction++) {
            if (cable.ends[direction].unit != unit)
                continue;
            CableDirection settings;
            settings.stream = 0x200 + direction + (uint64_t(n) << 32);
            settings.length_m = cable.length_m;
            settings.bit_error_rate = cable.bit_error_rate;
            settings.captured = !options_.pcap.empty();
            settings.rates = schedule_.cables[n].rates;
            for (auto& fault : schedule_.cables[n].faults)
                if (fault.direction < 0 || unsigned(fault.direction) == direction)
                    settings.faults.push_back(fault);
            ports[cable.ends[direction].port].leaving =
                std::make_unique<Cable>(profile_, options_.seed, std::move(settings));
        }
    }
    CableDirection nothing;
    nothing.plugged = false;
    for (auto& port : ports)
        if (!port.leaving)
            port.leaving = std::make_unique<Cable>(profile_, options_.seed, nothing);
    return ports;
}

void Simulation::join_cables()
{
    auto port = [this](const Topology::End& end) -> SerialPort& {
        return units_[end.unit]->ports()[end.port];
    };
    for (size_t n = 0; n < topology_.cables.size(); n++) {
        auto& ends = topology_.cables[n].ends;
        bool looped = schedule_.cables[n].looped;
        for (size_t direction = 0; direction < topology_.cables[n].directions(); direction++) {
            SerialPort& near = port(ends[direction]);
            if (looped)
                near.coming = near.leaving.get();
            else if (ends.size() > 1)
                port(ends[1 - direction]).coming = near.leaving.get();
            /* Words into an open end are lost. */
            near.received = looped || ends.size() > 1;
        }
    }
}

std::unique_ptr<CardUnit> Simulation::make_card(unsigned card, std::vector<SerialPort> ports)
{
    auto unit = std::make_unique<CardUnit>(
        profile_, std::move(ports),
        [this, card] { return make_device(options_.device, card, profile_, options_.seed); },
        trace_ != nullptr);
    /* A locally administered address (IEEE 802, 8.2.2), the same in each run. */
    unit->in.frame_address = uint64_t(card & 0xff) << 40 | uint64_t(card >> 8) << 32 | 0x42494402;
    if (!options_.preload.empty() && card == 0) {
        if (unit->device().sram_bytes() == 0)
            throw std::runtime_error("--preload: the device has no SRAM for it");
        preload_ = read_image(options_.preload, unit->device().sram_bytes());
    }
    if (!preload_.body.empty())
        unit->image = &preload_.body;
    if (!options_.record.empty())
        unit->pins = std::make_unique<PinsWriter>(
            options_.record + "/card" + std::to_string(card) + ".pins", card, options_.seed);
    if (options_.jtag)
        unit->jtag = std::make_unique<Jtag>(options_.socket_directory + "/card" +
                                            std::to_string(card) + ".jtag");
    return unit;
}

/* Give a card its host, and its sockets if there are any. */
void Simulation::offer(unsigned card)
{
    auto node = std::make_unique<Node>();
    node->unit = static_cast<CardUnit*>(units_[card].get());
    node->host = std::make_unique<RootComplex>(profile_, card, options_.seed, now_, node->unit->phy,
                                               node->memory, *this);
    if (!options_.socket_directory.empty()) {
        std::string socket = options_.socket_directory + "/card" + std::to_string(card) + ".sock";
        node->server =
            std::make_unique<vfio::Server>(socket, card, *this, clock_, *node->host, node->memory);
        node->observers =
            std::make_unique<vfio::Observers>(socket + ".admin", card, *this, *node->host);
    }
    nodes_.push_back(std::move(node));
}

/* Cycles that units and hosts can run apart: see the head of simulation.h. A word sent in the first
 * cycle must not arrive before the last one. */
unsigned Simulation::lookahead_cycles() const
{
    Time up = RootComplex::lookahead_up(profile_), down = RootComplex::lookahead_down(profile_);
    Time period = profile_.period();
    if (up < period || down < period)
        throw ProfileError("profile " + profile_.name +
                           ": a PCIe latency is below one clock of the card");
    Time cycles = (up + down - 1) / period;
    for (auto& cable : topology_.cables)
        cycles = std::min(cycles, (profile_.cable_delay(cable.length_m) + period - 1) / period);
    return unsigned(cycles);
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
        return (node->unit->jtag && node->unit->jtag->pending()) ||
               (node->observers && node->observers->pending());
    });
}

bool Simulation::watcher_connected() const
{
    return std::any_of(nodes_.begin(), nodes_.end(), [](auto& node) {
        return (node->unit->jtag && node->unit->jtag->connected()) ||
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
    /* A host that lost its card may have answered a program, which must run first. */
    if (apply_power() && !options_.socket_directory.empty() && blocked())
        return false;
    Time last_cycle_and_up =
        cycle_ * profile_.period() + RootComplex::lookahead_up(profile_) - profile_.period();
    if (!run_host(last_cycle_and_up))
        return false;
    now_ = std::max(now_, last_cycle_and_up);
    run_units();
    return true;
}

void Simulation::run_units()
{
    for (auto& node : nodes_) {
        const ConfigSpace& config = node->host->config;
        Inputs& in = node->unit->in;
        in.pcie_id = RootComplex::card_id;
        in.pcie_max_payload = uint16_t(config.max_payload());
        in.pcie_max_request = uint16_t(config.max_read_request());
        in.pcie_extended_tags = config.extended_tags();
        in.pcie_msix_enable = node->host->msix_enable();
        in.pcie_bus_master = config.bus_master();
    }
    cycles_ = unsigned(std::min<uint64_t>(quantum_, next_power_cycle() - cycle_));
    workers_->run();
    cycle_ += cycles_;
    for (auto& unit : units_)
        unit->meet();
    if (pcap_)
        write_frames();
    for (unsigned n = 0; n < nodes_.size(); n++) {
        Node& node = *nodes_[n];
        node.host->take(node.unit->phy.departed());
        if (!node.unit->has_power()) {
            node.unit->phy.reset();
            node.host->reset();
        }
        if (trace_)
            trace_->write(n, node.unit->phy.trace());
    }
    if (timeline_)
        show_programs();
}

/* Timeline ------------------------------------------------------------------------------------- */

/* Give each card a timeline, and its observers. */
void Simulation::show_all()
{
    timeline_ = std::make_unique<Timeline>(options_.timeline, topology_.cards);
    clock_.timeline = timeline_.get();
    for (unsigned n = 0; n < nodes_.size(); n++) {
        CardTimeline* card = &timeline_->card(n);
        nodes_[n]->host->timeline = nodes_[n]->unit->timeline = nodes_[n]->unit->phy.timeline =
            card;
    }
}

void Simulation::show_programs()
{
    Time period = profile_.period();
    for (unsigned n = 0; n < nodes_.size(); n++) {
        CardUnit& unit = *nodes_[n]->unit;
        if (unit.has_power() && cycle_ > unit.begun())
            timeline_->card(n).look_at_program(unit.device(), cycle_ - unit.begun(),
                                               cycle_ * period, period);
    }
    timeline_->write();
}

void Simulation::close_timeline()
{
    if (timeline_)
        timeline_->close(cycle_ * profile_.period());
}

/* Power ---------------------------------------------------------------------------------------- */

void Simulation::write_frames()
{
    for (auto& unit : units_)
        for (auto& port : unit->ports())
            if (auto* captured = port.leaving->captured()) {
                std::move(captured->begin(), captured->end(), std::back_inserter(frames_));
                captured->clear();
            }
    pcap_->write(frames_);
}

/* The first cycle at or after the time of the next event of power. */
uint64_t Simulation::next_power_cycle() const
{
    if (next_power_ == schedule_.power.size())
        return ~uint64_t(0);
    Time period = profile_.period();
    return (schedule_.power[next_power_].at + period - 1) / period;
}

/* Do what the script says of the power of units up to the present cycle; whether it said anything.
 * A host whose card has no power reads ones and writes in vain. */
bool Simulation::apply_power()
{
    size_t before = next_power_;
    for (; next_power_cycle() <= cycle_; next_power_++) {
        const PowerEvent& event = schedule_.power[next_power_];
        Unit& unit = *units_[event.unit];
        if (event.action != Event::on) {
            unit.set_power(false);
            if (event.unit < nodes_.size())
                nodes_[event.unit]->host->reset();
        }
        if (event.action != Event::off)
            unit.set_power(true);
    }
    return next_power_ != before;
}

void Simulation::reset_card(unsigned card)
{
    nodes_[card]->unit->reset(options_.reset_takes_power);
    nodes_[card]->host->reset();
}

uint32_t Simulation::drawn_for(unsigned card) const
{
    Random random(options_.seed, 0x300 + card + (uint64_t(nodes_[card]->unit->lives()) << 32));
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
        if (node->unit->jtag)
            node->unit->jtag->add_to(list);
    }
    if (poll(list.data(), nfds_t(list.size()), timeout_ms) > 0) {
        quiet_since_ = cycle_;
        bool busy = false;
        for (auto& node : nodes_) {
            busy |= node->server->serve();
            node->observers->serve();
            if (node->unit->jtag)
                node->unit->jtag->serve();
        }
        /* A thread with two cards sends by two sockets. What it sent to one card before it waited
         * on the other is in its socket by now, and has to be read before time goes on. */
        for (unsigned n = 0; busy && n < max_rounds && clock_.shares_thread(); n++) {
            busy = false;
            for (auto& node : nodes_)
                busy |= node->server->serve();
        }
        /* A program may make many calls while time stands. */
        if (timeline_)
            timeline_->write();
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
        traffic += node->unit->phy.statistics().tlps_up + node->unit->phy.statistics().tlps_down;
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
