/* SPDX-License-Identifier: BSD-2-Clause */

#include "topology.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <toml++/toml.h>

#include "dibber_interface.h"

namespace dibber {

namespace {

constexpr size_t max_switches = 64, max_name = 32;

/* The sizes of switch that boards/switch.py builds. */
constexpr unsigned switch_ports[] = {4, 8, 16};

/* Names go into messages, files and command lines: letters, digits, _ and -, a letter first. */
bool is_name(const std::string& text)
{
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !text.empty() && text.size() <= max_name && letter(text[0]) &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
           });
}

class TopologyReader {
public:
    TopologyReader(std::string file, const toml::table& root, const Profile& profile)
        : file_(std::move(file)), root_(root), profile_(profile)
    {
    }

    Topology read()
    {
        for (auto&& [key, node] : root_)
            if (key != "cards" && key != "links" && key != "switch" && key != "cable")
                fail(node, "unknown key '" + std::string(key.str()) + "'");
        const toml::node* cards = root_.get("cards");
        if (!cards)
            fail("key 'cards' is missing");
        topology_.cards = integer(*cards, "cards", 1, DIBBER_NODES);
        topology_.card_ports = profile_.card_ports();
        if (const toml::node* links = root_.get("links"))
            if (integer(*links, "links", 1, 2) != (profile_.has_two_links() ? 2 : 1))
                fail(*links, "the cards of fabric '" + profile_.link.fabric + "' of profile " +
                                 profile_.name + " have " +
                                 (profile_.has_two_links() ? "two links" : "one link"));
        each("switch", [this](auto& table) { read_switch(table); });
        each("cable", [this](auto& table) { read_cable(table); });
        if ((profile_.is_ring() || profile_.is_pair() || profile_.is_bonded()) &&
            !topology_.switches.empty())
            fail("a switch has no port for such a link: fabric '" + profile_.link.fabric +
                 "' of profile " + profile_.name);
        return std::move(topology_);
    }

private:
    [[noreturn]] void fail(const std::string& why) const
    {
        throw TopologyError("topology " + file_ + ": " + why);
    }

    [[noreturn]] void fail(const toml::node& node, const std::string& why) const
    {
        fail("line " + std::to_string(node.source().begin.line) + ": " + why);
    }

    unsigned integer(const toml::node& node, const std::string& key, unsigned low,
                     unsigned high) const
    {
        auto value = node.value<int64_t>();
        if (!node.is_integer() || !value)
            fail(node, "'" + key + "' must be a whole number");
        if (*value < int64_t(low) || *value > int64_t(high))
            fail(node, "'" + key + "' = " + std::to_string(*value) + " is outside " +
                           std::to_string(low) + " … " + std::to_string(high));
        return unsigned(*value);
    }

    double number(const toml::table& table, const std::string& key, double low, double high,
                  double otherwise) const
    {
        const toml::node* node = table.get(key);
        if (!node)
            return otherwise;
        auto value = node->value<double>();
        if (!node->is_number() || !value)
            fail(*node, "'" + key + "' must be a number");
        if (!(*value >= low && *value <= high)) { /* NaN too */
            char text[80];
            snprintf(text, sizeof(text), "' = %g is outside %g … %g", *value, low, high);
            fail(*node, "'" + key + text);
        }
        return *value;
    }

    std::string name(const toml::table& table, const std::string& otherwise) const
    {
        const toml::node* node = table.get("name");
        if (!node)
            return otherwise;
        auto text = node->value<std::string>();
        if (!node->is_string() || !text || !is_name(*text))
            fail(*node, "'name' must be a word of at most " + std::to_string(max_name) +
                            " letters, digits, _ and -, which begins with a letter");
        return *text;
    }

    template <typename Function>
    void each(const char* key, Function function) const
    {
        const toml::node* node = root_.get(key);
        if (!node)
            return;
        if (!node->is_array_of_tables())
            fail(*node, std::string("'") + key + "' must be tables: [[" + key + "]]");
        for (auto& element : *node->as_array())
            function(*element.as_table());
    }

    void only(const toml::table& table, std::initializer_list<std::string_view> known,
              const char* what) const
    {
        for (auto&& [key, node] : table)
            if (std::find(known.begin(), known.end(), key.str()) == known.end())
                fail(node,
                     std::string("unknown key '") + std::string(key.str()) + "' of a " + what);
    }

    void read_switch(const toml::table& table)
    {
        only(table, {"name", "ports"}, "switch");
        if (topology_.switches.size() == max_switches)
            fail(table, "more than " + std::to_string(max_switches) + " switches");
        Topology::Switch found;
        found.name = name(table, "switch" + std::to_string(topology_.switches.size()));
        if (topology_.find_unit(found.name) >= 0)
            fail(table, "the name '" + found.name + "' is used twice");
        const toml::node* ports = table.get("ports");
        if (!ports)
            fail(table, "switch '" + found.name + "': key 'ports' is missing");
        found.ports = integer(*ports, "ports", switch_ports[0], std::end(switch_ports)[-1]);
        if (std::find(std::begin(switch_ports), std::end(switch_ports), found.ports) ==
            std::end(switch_ports))
            fail(*ports, "switch '" + found.name + "': a switch has 4, 8 or 16 ports");
        topology_.switches.push_back(found);
    }

    void read_cable(const toml::table& table)
    {
        only(table, {"name", "ends", "length_m", "bit_error_rate", "one_way"}, "cable");
        Topology::Cable cable;
        cable.name = name(table, "cable" + std::to_string(topology_.cables.size()));
        std::string which = "cable '" + cable.name + "': ";
        if (topology_.find_cable(cable.name) >= 0 || topology_.find_unit(cable.name) >= 0)
            fail(table, "the name '" + cable.name + "' is used twice");
        cable.length_m = number(table, "length_m", 0, 10000, profile_.link.length_m);
        cable.bit_error_rate =
            number(table, "bit_error_rate", 0, 0.1, profile_.link.bit_error_rate);
        if (profile_.cable_delay(cable.length_m) < profile_.period())
            fail(table, which + "its delay is below one clock of the card");
        if (const toml::node* one_way = table.get("one_way")) {
            if (!one_way->is_boolean())
                fail(*one_way, which + "'one_way' must be true or false");
            cable.one_way = *one_way->value<bool>();
            if (cable.one_way && !profile_.is_ring())
                fail(*one_way, which + "one way is for a ring: the fabric of profile " +
                                   profile_.name + " is '" + profile_.link.fabric + "'");
        }
        const toml::node* ends = table.get("ends");
        if (!ends)
            fail(table, which + "key 'ends' is missing");
        const toml::array* list = ends->as_array();
        if (!list || list->empty() || list->size() > 2)
            fail(*ends, which + "'ends' must be one or two of \"UNIT\" or \"UNIT:PORT\"");
        if (cable.one_way && list->size() != 2)
            fail(*ends, which + "a cable that goes one way has two ends");
        for (auto& end : *list)
            cable.ends.push_back(read_end(end, which, cable));
        topology_.cables.push_back(cable);
    }

    Topology::End read_end(const toml::node& node, const std::string& which,
                           const Topology::Cable& cable)
    {
        auto text = node.value<std::string>();
        if (!node.is_string() || !text)
            fail(node, which + "an end must be \"UNIT\" or \"UNIT:PORT\"");
        std::string unit = text->substr(0, text->find(':'));
        int number = topology_.find_unit(unit);
        if (number < 0)
            fail(node, which + "there is no card or switch '" + unit.substr(0, 2 * max_name) + "'");
        unsigned ports = topology_.ports(unsigned(number)), port = 0;
        if (unit.size() != text->size()) {
            const char *begin = text->c_str() + unit.size() + 1,
                       *end = text->c_str() + text->size();
            auto [rest, error] = std::from_chars(begin, end, port);
            if (error != std::errc() || rest != end || port >= ports)
                fail(node, which + "'" + text->substr(0, 2 * max_name) + "': " + unit +
                               " has the ports 0 … " + std::to_string(ports - 1));
        } else if (ports > 1) {
            fail(node, which + "'" + unit + "' has " + std::to_string(ports) +
                           " ports: say which, as in '" + unit + ":0'");
        }
        Topology::End end{unsigned(number), port};
        /* What a cable takes of its port: the transmitter, the receiver, or both. */
        bool leaves = !cable.one_way || cable.ends.empty();
        bool comes = !cable.one_way || !cable.ends.empty();
        for (auto [takes, users] : {std::pair(leaves, &leaving_), std::pair(comes, &coming_)}) {
            if (!takes)
                continue;
            auto [used, fresh] = users->emplace(std::pair(end.unit, end.port), cable.name);
            if (!fresh)
                fail(node, which + "port " + std::to_string(port) + " of " + unit + " has cable '" +
                               used->second + "' already");
        }
        return end;
    }

    const std::string file_;
    const toml::table& root_;
    const Profile& profile_;
    Topology topology_;
    /* (unit, port): the cable at its transmitter, and at its receiver */
    std::map<std::pair<unsigned, unsigned>, std::string> leaving_, coming_;
};

} // namespace

unsigned Topology::ports(unsigned unit) const
{
    return unit < cards ? card_ports : switches[unit - cards].ports;
}

std::string Topology::name(unsigned unit) const
{
    return unit < cards ? "card" + std::to_string(unit) : switches[unit - cards].name;
}

int Topology::find_unit(const std::string& wanted) const
{
    for (unsigned unit = 0; unit < units(); unit++)
        if (name(unit) == wanted)
            return int(unit);
    return -1;
}

int Topology::find_cable(const std::string& wanted) const
{
    for (size_t n = 0; n < cables.size(); n++)
        if (cables[n].name == wanted)
            return int(n);
    return -1;
}

Topology cabled_cards(unsigned cards, const Profile& profile)
{
    Topology topology{cards, profile.card_ports(), {}, {}};
    Topology::Cable cable{"cable0", {}, profile.link.length_m, profile.link.bit_error_rate};
    bool round = profile.is_ring() || profile.is_pair();
    for (unsigned n = 0; n < cards && round; n++) {
        cable.name = "cable" + std::to_string(n);
        cable.ends = {{n, 0}, {(n + 1) % cards, profile.is_pair() ? 1u : 0u}};
        cable.one_way = profile.is_ring();
        topology.cables.push_back(cable);
    }
    for (unsigned n = 0; n < cards && !round; n++)
        cable.ends.push_back({n, 0});
    if (!round)
        topology.cables.push_back(cable);
    if (profile.card_ports() == 2 && !round) {
        cable.name = "cable1";
        for (auto& end : cable.ends)
            end.port = 1;
        topology.cables.push_back(cable);
    }
    return topology;
}

Topology read_topology(const std::string& path, const Profile& profile)
{
    std::string file = std::filesystem::path(path).filename().string();
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        throw TopologyError(
            "topology " + file + ": " +
            (std::filesystem::exists(path, error) ? "not a plain file" : "no such file"));
    try {
        toml::table root = toml::parse_file(path);
        return TopologyReader(file, root, profile).read();
    } catch (const toml::parse_error& problem) {
        throw TopologyError("topology " + file + ": line " +
                            std::to_string(problem.source().begin.line) + ": " +
                            std::string(problem.description()));
    }
}

} // namespace dibber
