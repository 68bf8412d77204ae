/* SPDX-License-Identifier: BSD-2-Clause */

#include "script.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace dibber {

namespace {

constexpr const char* action_names[] = {"pull", "plug", "errors", "off", "on", "power"};

constexpr double max_microseconds = 1e12;

/* A script is written by people or tests; a file of gigabytes is a mistake. */
constexpr size_t max_events = 100000;

std::optional<double> number(const std::string& text, double most)
{
    double value = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most))
        return std::nullopt; /* NaN too */
    return value;
}

bool is_of_cable(Event::Action action)
{
    return action == Event::pull || action == Event::plug || action == Event::errors;
}

class Scheduler {
public:
    explicit Scheduler(const Topology& topology)
        : topology_(topology), pulled_(topology.cables.size()), off_(topology.units())
    {
        schedule_.cables.resize(topology.cables.size());
    }

    void add(const NamedFault& named)
    {
        int only = -1;
        if (!named.cable.empty()) {
            only = topology_.find_cable(named.cable);
            if (only < 0)
                throw ScriptError("--fault: there is no cable '" + named.cable + "'");
        }
        for (size_t n = 0; n < schedule_.cables.size(); n++) {
            if (only >= 0 && size_t(only) != n)
                continue;
            bool one_way = topology_.cables[n].one_way;
            if (one_way && (named.fault.kind == CableFault::loopback || named.fault.direction == 1))
                throw ScriptError("--fault: cable '" + topology_.cables[n].name +
                                  "' goes one way: it has direction 0 alone, and no loopback");
            if (named.fault.kind == CableFault::loopback)
                schedule_.cables[n].looped = true;
            else
                schedule_.cables[n].faults.push_back(named.fault);
        }
    }

    void add(const Event& event)
    {
        if (is_of_cable(event.action))
            add_to_cable(event);
        else
            add_to_unit(event);
    }

    Schedule finish()
    {
        for (size_t n = 0; n < pulled_.size(); n++)
            if (pulled_[n])
                cut(n, *pulled_[n], never);
        return std::move(schedule_);
    }

private:
    [[noreturn]] static void fail(const Event& event, const std::string& why)
    {
        throw ScriptError(event.where + ": " + why);
    }

    void cut(size_t cable, Time from, Time until)
    {
        schedule_.cables[cable].faults.push_back({CableFault::unplugged, from, until});
    }

    void add_to_cable(const Event& event)
    {
        int found = topology_.find_cable(event.name);
        if (found < 0)
            fail(event, "there is no cable '" + event.name + "'");
        auto& pulled = pulled_[size_t(found)];
        if (event.action == Event::errors) {
            schedule_.cables[size_t(found)].rates.emplace_back(event.at, event.rate);
        } else if (event.action == Event::pull) {
            if (pulled)
                fail(event, "'" + event.name + "' is pulled already");
            pulled = event.at;
        } else {
            if (!pulled)
                fail(event, "'" + event.name + "' is plugged already");
            cut(size_t(found), *pulled, event.at);
            pulled.reset();
        }
    }

    void add_to_unit(const Event& event)
    {
        int found = topology_.find_unit(event.name);
        if (found < 0)
            fail(event, "there is no card or switch '" + event.name + "'");
        bool is_off = off_[size_t(found)];
        if (event.action == Event::on ? !is_off : is_off)
            fail(event, "'" + event.name + "' is " + (is_off ? "off" : "on") + " already");
        off_[size_t(found)] = event.action == Event::off;
        schedule_.power.push_back({event.at, unsigned(found), event.action});
    }

    const Topology& topology_;
    Schedule schedule_;
    std::vector<std::optional<Time>> pulled_; /* since when */
    std::vector<bool> off_;
};

} // namespace

Event parse_event(const std::string& text, const std::string& where)
{
    std::istringstream stream(text);
    std::string time, action, name, rate, more;
    stream >> time >> action >> name >> rate >> more;
    auto fail = [&](const std::string& why) { throw ScriptError(where + ": " + why); };
    auto at = number(time, max_microseconds);
    if (!at)
        fail("'" + time + "' is no time in microseconds");
    auto known = std::find(std::begin(action_names), std::end(action_names), action);
    if (known == std::end(action_names))
        fail("'" + action + "' is not pull, plug, errors, off, on or power");
    Event event{from_ns(*at * 1e3), Event::Action(known - action_names), name, 0, where};
    if (name.empty())
        fail(action + " of which cable, card or switch?");
    if (event.action == Event::errors) {
        auto found = number(rate, 0.1);
        if (!found)
            fail("'" + rate + "' is no bit error rate, 0 … 0.1");
        event.rate = *found;
    } else {
        more = rate;
    }
    if (!more.empty())
        fail("'" + more + "' is too much");
    return event;
}

std::vector<Event> read_script(const std::string& path)
{
    std::ifstream file(path);
    std::string line, where = "script " + path;
    /* A folder can be opened, and cannot be read. */
    if (!file || (file.peek(), file.bad()))
        throw ScriptError(where + ": " + strerror(errno));
    std::vector<Event> events;
    for (size_t number = 1; std::getline(file, line); number++) {
        line.resize(std::min(line.size(), line.find('#')));
        if (line.find_first_not_of(" \t\r") == std::string::npos)
            continue;
        if (events.size() == max_events)
            throw ScriptError(where + ": more than " + std::to_string(max_events) + " events");
        events.push_back(parse_event(line, where + ": line " + std::to_string(number)));
    }
    return events;
}

NamedFault parse_named_fault(const std::string& text)
{
    size_t sign = text.find('=');
    if (sign == std::string::npos)
        return {"", parse_fault(text)};
    if (sign == 0)
        throw std::invalid_argument("'" + text + "' names no cable before '='");
    return {text.substr(0, sign), parse_fault(text.substr(sign + 1))};
}

Schedule make_schedule(const Topology& topology, const std::vector<NamedFault>& faults,
                       std::vector<Event> events)
{
    Scheduler scheduler(topology);
    for (auto& fault : faults)
        scheduler.add(fault);
    std::stable_sort(events.begin(), events.end(),
                     [](auto& one, auto& other) { return one.at < other.at; });
    for (auto& event : events)
        scheduler.add(event);
    return scheduler.finish();
}

} // namespace dibber
