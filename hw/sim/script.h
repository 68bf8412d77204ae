/* What goes wrong in a run, and when: faults of cables (--fault), and events of cables and units
 * (--script, --at).
 *
 * An event is "TIME ACTION NAME [RATE]", TIME in microseconds of simulated time. A script has an
 * event a line; what follows # is a comment. Lines may be in any order.
 *
 *     1000 pull   cable3           both ends hear noise, then no signal
 *     2000 plug   cable3
 *     2500 errors cable0 1e-6      bit error rate from now on; 0: none
 *     3000 off    switch1          a unit without power: it sends nothing and forgets all
 *     3500 on     switch1          it comes back as new
 *     4000 power  card2            off and on at once
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <string>
#include <vector>

#include "cable/cable.h"
#include "topology.h"

namespace dibber {

struct ScriptError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Event {
    enum Action { pull, plug, errors, off, on, power };

    Time at;
    Action action;
    std::string name;    /* of a cable or a unit */
    double rate = 0;     /* of `errors` */
    std::string where{}; /* in messages: "--at 'TEXT'" or "script FILE: line N" */
};

/* An event from its text. Throws ScriptError, which begins with `where`. */
Event parse_event(const std::string& text, const std::string& where);

/* The events of a file. Throws ScriptError, which names file and line. */
std::vector<Event> read_script(const std::string& path);

/* A fault of one cable, or of all cables if `cable` is empty. */
struct NamedFault {
    std::string cable;
    CableFault fault;
};

/* "[CABLE=]FAULT" with FAULT as parse_fault() has it. Throws std::invalid_argument. */
NamedFault parse_named_fault(const std::string& text);

struct PowerEvent {
    Time at;
    unsigned unit;
    Event::Action action; /* off, on or power */
};

/* What a run does to each cable and unit. */
struct Schedule {
    struct CableSchedule {
        bool looped = false; /* each end hears itself */
        std::vector<CableFault> faults;
        std::vector<std::pair<Time, double>> rates; /* by time */
    };

    std::vector<CableSchedule> cables; /* as in the topology */
    std::vector<PowerEvent> power;     /* by time */
};

/* Throws ScriptError for a name that is not there, and for what cannot be, as a plug of what is not
 * pulled. */
Schedule make_schedule(const Topology& topology, const std::vector<NamedFault>& faults,
                       std::vector<Event> events);

} // namespace dibber
