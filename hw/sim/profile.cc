/* SPDX-License-Identifier: BSD-2-Clause */

#include "profile.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <toml++/toml.h>

#include "dibber_interface.h"

namespace dibber {

namespace {

/* One table of the file: it must have every requested key, and no other. */
class Reader {
public:
    Reader(std::string file, const toml::table& root) : file_(std::move(file)), root_(root) {}

    [[noreturn]] void fail(const std::string& why) const
    {
        throw ProfileError("profile " + file_ + ": " + why);
    }

    double number(const std::string& key, double low, double high)
    {
        const toml::node& node = find(key);
        auto value = node.value<double>();
        if (!value || node.is_boolean() || node.is_string())
            fail("'" + key + "' must be a number");
        if (!(*value >= low && *value <= high))
            fail("'" + key + "' = " + text(*value) + " is outside " + text(low) + " … " +
                 text(high));
        return *value;
    }

    /* A number that the file may leave out. */
    double number_or(const std::string& key, double low, double high, double otherwise)
    {
        known_.insert(key);
        return root_.at_path(key) ? number(key, low, high) : otherwise;
    }

    unsigned integer_or(const std::string& key, unsigned low, unsigned high, unsigned otherwise)
    {
        known_.insert(key);
        return root_.at_path(key) ? integer(key, low, high) : otherwise;
    }

    unsigned integer(const std::string& key, unsigned low, unsigned high)
    {
        if (!find(key).is_integer())
            fail("'" + key + "' must be a whole number");
        return unsigned(number(key, low, high));
    }

    unsigned power_of_two(const std::string& key, unsigned low, unsigned high)
    {
        unsigned value = integer(key, low, high);
        if (value & (value - 1))
            fail("'" + key + "' = " + std::to_string(value) + " is not a power of two");
        return value;
    }

    std::string word_or(const std::string& key, const std::string& otherwise)
    {
        known_.insert(key);
        return root_.at_path(key) ? word(key) : otherwise;
    }

    bool boolean(const std::string& key)
    {
        const toml::node& node = find(key);
        if (!node.is_boolean())
            fail("'" + key + "' must be true or false");
        return *node.value<bool>();
    }

    std::string word(const std::string& key)
    {
        const toml::node& node = find(key);
        if (!node.is_string())
            fail("'" + key + "' must be a string");
        return *node.value<std::string>();
    }

    /* A word of letters, digits and . _ + -, because it becomes part of the names of results. */
    std::string name(const std::string& key)
    {
        std::string value = word(key);
        if (value.empty() || value.size() > 64 || value[0] == '.' ||
            value.find_first_not_of(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") !=
                std::string::npos)
            fail("'" + key + "' must be a word of letters, digits and . _ + -");
        return value;
    }

    /* A key that was not requested is a mistake of the writer. */
    void refuse_unknown() const
    {
        for (auto&& [table, node] : root_) {
            std::string name(table.str());
            auto first = known_.lower_bound(name + ".");
            if (node.is_table()
                    ? first == known_.end() || first->compare(0, name.size() + 1, name + ".") != 0
                    : !known_.count(name))
                fail("unknown key '" + name + "'");
            if (!node.is_table())
                continue;
            for (auto&& [key, value] : *node.as_table()) {
                (void)value;
                std::string path = std::string(table.str()) + "." + std::string(key.str());
                if (!known_.count(path))
                    fail("unknown key '" + path + "'");
            }
        }
    }

    static std::string text(double value)
    {
        char buffer[32];
        snprintf(buffer, sizeof(buffer), "%g", value);
        return buffer;
    }

private:
    const toml::node& find(const std::string& key)
    {
        known_.insert(key);
        auto node = root_.at_path(key);
        if (!node)
            fail("key '" + key + "' is missing");
        return *node.node();
    }

    std::string file_;
    const toml::table& root_;
    std::set<std::string> known_;
};

void apply_override(const Reader& reader, toml::table& root, const std::string& text)
{
    size_t equals = text.find('='), dot = text.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals)
        reader.fail("override '" + text + "' is not table.key=value");
    std::string table = text.substr(0, dot), key = text.substr(dot + 1, equals - dot - 1);
    toml::table line;
    try {
        line = toml::parse("value = " + text.substr(equals + 1));
    } catch (const toml::parse_error& error) {
        reader.fail("override '" + text + "': " + std::string(error.description()));
    }
    if (line.size() != 1)
        reader.fail("override '" + text + "' is more than one key");
    if (!root[table].is_table())
        reader.fail("unknown key '" + table + "." + key + "'");
    root[table].as_table()->insert_or_assign(key, *line.get("value"));
}

} // namespace

void Profile::finish()
{
    /* PCIe Base 3.0, 4.2.2: 128b/130b above 5 GT/s; 4.2.1: 8b/10b up to there. */
    double code = pcie.rate_gbps > 5 ? 128.0 / 130 : 0.8;
    pcie_ps_per_byte_ =
        8e3 / (pcie.lanes * pcie.rate_gbps * code * (1 - pcie.overhead_percent / 100));
}

Time Profile::cpu_time(uint32_t call, uint32_t count) const
{
    switch (call) {
    case 0:
        return from_ns(count / instructions_per_ns);
    case DIBBER_CALL_PUT:
        return from_ns(cpu.put_ns) * count;
    case DIBBER_CALL_PUT_STRIDED:
        return from_ns(cpu.put_strided_ns) * count;
    case DIBBER_CALL_POLL_EMPTY:
        return from_ns(cpu.poll_empty_ns) * count;
    case DIBBER_CALL_POLL_ENTRY:
        return from_ns(cpu.poll_entry_ns) * count;
    case DIBBER_CALL_MAILBOX_SEND:
        return from_ns(cpu.mailbox_send_ns) * count;
    case DIBBER_CALL_MAILBOX_RECEIVE:
        return from_ns(cpu.mailbox_receive_ns) * count;
    case DIBBER_CALL_MAILBOX_EMPTY:
        return from_ns(cpu.mailbox_empty_ns) * count;
    case DIBBER_CALL_COPY:
        return copy_time(count);
    }
    return never;
}

/* As in dibber_cli/bench/cpu.py, for contiguous bytes that begin with a line. */
Time Profile::copy_time(uint32_t bytes) const
{
    if (bytes == 0)
        return 0;
    unsigned near = (bytes + memory.line_bytes - 1) / memory.line_bytes - 1;
    return from_ns(
        std::max(copy.element_ns, 2 * near * copy.line_ns + copy.far_load_ns + copy.far_store_ns));
}

Profile read_profile(const std::string& path, const std::vector<std::string>& overrides)
{
    std::filesystem::path file(path);
    toml::table root;
    Reader reader(file.filename().string(), root);
    if (!std::filesystem::is_regular_file(file))
        reader.fail("no such file: " + path);
    try {
        root = toml::parse_file(path);
    } catch (const toml::parse_error& error) {
        reader.fail("line " + std::to_string(error.source().begin.line) + ": " +
                    std::string(error.description()));
    }
    for (auto& text : overrides)
        apply_override(reader, root, text);

    Profile p;
    p.name = reader.name("name");

    p.card.clock_mhz = reader.number("card.clock_mhz", 1, 1000);
    p.card.data_width = reader.power_of_two("card.data_width", 64, 256);

    p.pcie.lanes = reader.power_of_two("pcie.lanes", 1, 16);
    p.pcie.rate_gbps = reader.number("pcie.rate_gbps", 0.1, 8);
    p.pcie.overhead_percent = reader.number("pcie.overhead_percent", 0, 50);
    p.pcie.framing_bytes = reader.integer("pcie.framing_bytes", 0, 64);
    p.pcie.max_payload = reader.power_of_two("pcie.max_payload", 128, 512);
    p.pcie.max_read_request = reader.power_of_two("pcie.max_read_request", 128, 4096);
    p.pcie.read_completion_boundary = reader.power_of_two("pcie.read_completion_boundary", 64, 128);
    p.pcie.read_latency_ns = reader.number("pcie.read_latency_ns", 1, 1e6);
    p.pcie.posted_up_ns = reader.number("pcie.posted_up_ns", 1, 1e6);
    p.pcie.posted_down_ns = reader.number("pcie.posted_down_ns", 1, 1e6);
    p.pcie.posted_headers = reader.integer("pcie.posted_headers", 1, 2047);
    p.pcie.posted_data = reader.integer("pcie.posted_data", 32, 2047);
    p.pcie.nonposted_headers = reader.integer("pcie.nonposted_headers", 1, 2047);
    p.pcie.credit_return_ns = reader.number("pcie.credit_return_ns", 1, 1e6);
    p.pcie.extended_tags = reader.boolean("pcie.extended_tags");
    p.pcie.transmit_buffer_tlps = reader.integer("pcie.transmit_buffer_tlps", 1, 1024);
    p.pcie.transmit_buffer_bytes = reader.integer("pcie.transmit_buffer_bytes", 1024, 65536);
    p.pcie.completion_timeout_us = reader.number("pcie.completion_timeout_us", 1, 1e6);
    p.pcie.completion_reorder_ns = reader.number("pcie.completion_reorder_ns", 0, 1e6);
    p.pcie.completion_fault_rate = reader.number_or("pcie.completion_fault_rate", 0, 1, 0);
    static const std::map<std::string, CompletionSplit> splits = {
        {"boundary", CompletionSplit::boundary},
        {"maximum", CompletionSplit::maximum},
        {"random", CompletionSplit::random}};
    auto split = splits.find(reader.word("pcie.completion_split"));
    if (split == splits.end())
        reader.fail("'pcie.completion_split' must be \"boundary\", \"maximum\" or \"random\"");
    p.pcie.completion_split = split->second;

    p.memory.partial_line_ns = reader.number("memory.partial_line_ns", 0, 1e6);
    p.memory.line_bytes = reader.power_of_two("memory.line_bytes", 16, 256);

    p.link.rate_gbps = reader.number("link.rate_gbps", 0.1, 40);
    p.link.length_m = reader.number("link.length_m", 0, 10000);
    p.link.delay_ns_per_m = reader.number("link.delay_ns_per_m", 0, 100);
    p.link.transmit_ns = reader.number("link.transmit_ns", 0, 1e6);
    p.link.receive_ns = reader.number("link.receive_ns", 0, 1e6);
    p.link.bit_error_rate = reader.number("link.bit_error_rate", 0, 0.1);
    p.link.mtu = reader.integer_or("link.mtu", 72, 9216, 0);
    p.link.peers = reader.integer_or("link.peers", 1, 15, 1);
    p.link.bulk_width = reader.integer_or("link.bulk_width", 32, 64, 32);
    p.link.switch_queue_bytes =
        reader.integer_or("link.switch_queue_bytes", 9300, 1 << 24, 128 * 1024);
    p.link.fabric = reader.word_or("link.fabric", "direct");
    if (p.link.fabric != "direct" && !p.has_two_links() && !p.is_ring() && !p.is_pair() &&
        !p.is_bonded())
        reader.fail("'link.fabric' must be \"direct\", \"two-links\", \"ring\", \"ring-pair\" or "
                    "\"bonded\"");
    p.link.skew_ns = reader.number_or("link.skew_ns", 0, 1e6, 0);
    p.link.frame_loss = reader.number_or("link.frame_loss", 0, 1, 0);
    p.link.frame_late = reader.number_or("link.frame_late", 0, 1, 0);

    p.cpu.put_ns = reader.number("cpu.put_ns", 0, 1e6);
    p.cpu.put_strided_ns = reader.number("cpu.put_strided_ns", 0, 1e6);
    p.cpu.poll_empty_ns = reader.number("cpu.poll_empty_ns", 0, 1e6);
    p.cpu.poll_entry_ns = reader.number("cpu.poll_entry_ns", 0, 1e6);
    p.cpu.mailbox_send_ns = reader.number("cpu.mailbox_send_ns", 0, 1e6);
    p.cpu.mailbox_receive_ns = reader.number("cpu.mailbox_receive_ns", 0, 1e6);
    p.cpu.mailbox_empty_ns = reader.number("cpu.mailbox_empty_ns", 0, 1e6);

    p.copy.element_ns = reader.number("benchmark.copy_element_ns", 0, 1e6);
    p.copy.line_ns = reader.number("benchmark.copy_line_ns", 0, 1e6);
    p.copy.far_load_ns = reader.number("benchmark.copy_far_load_ns", 0, 1e6);
    p.copy.far_store_ns = reader.number("benchmark.copy_far_store_ns", 0, 1e6);

    p.window.combining_buffers = reader.integer_or("window.combining_buffers", 1, 64, 10);
    p.window.line_ns = reader.number_or("window.line_ns", 0, 1e6, 16);
    p.window.store_ns = reader.number_or("window.store_ns", 0, 1e6, 0.25);
    reader.refuse_unknown();
    p.finish();

    if (p.pcie.transmit_buffer_bytes < p.pcie.max_payload + 16)
        reader.fail("'pcie.transmit_buffer_bytes' does not hold one TLP of the maximum payload");
    if (p.pcie.posted_data * 16 < p.pcie.max_payload)
        reader.fail("'pcie.posted_data' does not allow one TLP of the maximum payload");
    if (p.cable_delay(p.link.length_m) < p.period())
        reader.fail("the cable with its transceivers is shorter than one clock of the card");
    if (p.link.mtu == 0 && p.link.frame_loss + p.link.frame_late > 0)
        reader.fail("'link.frame_loss' and 'link.frame_late' are for a link with 'link.mtu'");
    if (p.link.mtu == 0 && p.link.peers > 1)
        reader.fail("'link.peers' is for a link with 'link.mtu'");
    if (p.link.bulk_width != 32 && (p.link.bulk_width != 64 || p.link.mtu == 0))
        reader.fail("'link.bulk_width' must be 32, or 64 with 'link.mtu'");
    if (p.link.mtu != 0 && p.link.rate_gbps * 1e3 > p.card.clock_mhz * 64 * 1.0001)
        reader.fail("'link.rate_gbps' is more than eight bytes a clock of the card");
    if (p.link.mtu != 0 && p.link.fabric != "direct")
        reader.fail("'link.fabric' = \"" + p.link.fabric +
                    "\" is for a serial link, without 'link.mtu'");
    if (p.is_bonded() && p.link.rate_gbps * 1e3 > p.card.clock_mhz * 66)
        reader.fail("'link.rate_gbps' is more than a block of each lane in a clock of the card");
    if (!p.is_bonded() && p.link.skew_ns > 0)
        reader.fail("'link.skew_ns' is for a link with 'link.fabric' = \"bonded\"");
    if (p.link.mtu == 0 && !p.is_bonded() &&
        p.link.rate_gbps * 1e3 > p.card.clock_mhz * 40 * 1.0001)
        reader.fail("'link.rate_gbps' is more than four symbols a clock of the card");
    return p;
}

} // namespace dibber
