/* SPDX-License-Identifier: BSD-2-Clause */

#include <nlohmann/json.hpp>

#include "simulation.h"

namespace dibber {

/* Of each cable: its name, and for each end what it sends and what happens to that. */
nlohmann::ordered_json Simulation::cable_statistics() const
{
    auto list = nlohmann::ordered_json::array();
    for (auto& cable : topology_.cables) {
        auto ends = nlohmann::ordered_json::array();
        for (size_t n = 0; n < cable.directions(); n++) {
            auto& end = cable.ends[n];
            const CableStatistics& sent = units_[end.unit]->ports()[end.port].leaving->statistics();
            ends.push_back({{"unit", topology_.name(end.unit)},
                            {"port", end.port},
                            {"words", sent.words},
                            {"lost_words", sent.lost_words},
                            {"bit_errors", sent.bit_errors}});
        }
        list.push_back({{"name", cable.name}, {"length_m", cable.length_m}, {"ends", ends}});
    }
    return list;
}

std::string Simulation::statistics() const
{
    using nlohmann::ordered_json;
    double elapsed_ps = double(cycle_) * double(profile_.period());
    ordered_json out = {{"profile", profile_.name},
                        {"seed", options_.seed},
                        {"cycles", cycle_},
                        {"simulated_ns", elapsed_ps / 1e3},
                        {"quantum_cycles", quantum_},
                        {"wall_seconds", running_seconds_},
                        {"cpu_seconds", cpu_seconds_},
                        {"cycles_per_second_per_card",
                         running_seconds_ > 0 ? double(cycle_) / running_seconds_ : 0},
                        {"cards", ordered_json::array()}};
    for (size_t n = 0; n < nodes_.size(); n++) {
        const Node& node = *nodes_[n];
        const PhyStatistics& phy = node.unit->phy.statistics();
        const HostStatistics& host = node.host->statistics();
        const CableStatistics& cable = node.unit->ports()[0].leaving->statistics();
        ordered_json faults = ordered_json::object();
        for (unsigned f = 1; f < host.faults.size(); f++)
            if (host.faults[f])
                faults[fault_name(Fault(f))] = host.faults[f];
        out["cards"].push_back(
            {{"from_card",
              {{"tlps", phy.tlps_up},
               {"bytes", phy.bytes_up},
               {"writes", host.writes},
               {"write_bytes", host.write_bytes},
               {"reads", host.reads},
               {"read_bytes", host.read_bytes},
               {"interrupts", host.interrupts},
               {"link_utilisation", elapsed_ps > 0 ? phy.busy_up_ps / elapsed_ps : 0},
               {"not_ready_cycles", phy.not_ready_cycles},
               {"credit_wait_ns", double(phy.credit_wait_ps) / 1e3},
               {"memory_wait_ns", double(host.memory_wait_ps) / 1e3}}},
             {"to_card",
              {{"tlps", phy.tlps_down},
               {"bytes", phy.bytes_down},
               {"completions", host.completions_down},
               {"bar_writes", host.bar_writes},
               {"bar_reads", host.bar_reads},
               {"bar_read_errors", host.bar_read_errors},
               {"bar_read_timeouts", host.bar_read_timeouts},
               {"link_utilisation", elapsed_ps > 0 ? host.busy_down_ps / elapsed_ps : 0},
               {"stalled_cycles", phy.stalled_cycles}}},
             {"faults", faults},
             {"stream_errors", phy.stream_errors},
             {"byte_enable_errors", phy.byte_enable_errors},
             {"cable",
              {{"words", cable.words},
               {"lost_words", cable.lost_words},
               {"bit_errors", cable.bit_errors},
               {"code_errors", cable.code_errors},
               {"disparity_errors", cable.disparity_errors}}}});
    }
    /* The cables of a pair are those of its cards. */
    if (!options_.topology.empty())
        out["cables"] = cable_statistics();
    return out.dump(2) + "\n";
}

} // namespace dibber
