/* SPDX-License-Identifier: BSD-2-Clause */

#include "gates.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace dibber {

/* The list ------------------------------------------------------------------------------------- */

Gates::Gates(const std::string& path)
{
    read(path);
    order();
}

void Gates::read(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error(path + ": cannot be read");
    std::map<std::tuple<Net, Net>, std::vector<Flop>> flops;
    std::string line, kind;
    for (unsigned number = 1; std::getline(file, line); number++) {
        std::istringstream words(line);
        auto bad = [&] {
            return std::runtime_error(path + ", line " + std::to_string(number) + ": " +
                                      line.substr(0, 40));
        };
        auto net = [&](Net& to) {
            if (!(words >> to) || to >= values_.size())
                throw bad();
        };
        auto nets = [&](auto& to) {
            for (Net& one : to)
                net(one);
        };
        words >> kind;
        if (kind == "nets") {
            size_t count = 0;
            words >> count;
            values_.assign(count, 0);
            if (count < 2)
                throw bad();
            values_[1] = 1;
        } else if (kind == "input" || kind == "output") {
            std::string name;
            Port port;
            words >> name;
            while (words >> std::ws && !words.eof())
                net(port.emplace_back());
            (kind == "input" ? inputs_ : outputs_).emplace_back(name, port);
        } else if (kind == "lut") {
            Lut lut{};
            words >> std::hex >> lut.table >> std::dec;
            net(lut.out);
            nets(lut.in);
            luts_.push_back(lut);
        } else if (kind == "ff") {
            Flop flop{};
            Net enable, reset;
            unsigned value = 0;
            words >> value;
            net(flop.out), net(flop.in), net(enable), net(reset);
            flop.reset = value;
            values_[flop.out] = value;
            flops[{enable, reset}].push_back(flop);
        } else if (kind == "ram16") {
            Ram16 ram{};
            nets(ram.out), net(ram.we), nets(ram.write), nets(ram.data), nets(ram.read);
            rams_.push_back(ram);
        } else if (kind == "block") {
            Block block{};
            words >> block.width >> block.old[0] >> block.old[1];
            for (Side& side : block.side)
                net(side.enable), net(side.write), nets(side.address), nets(side.in),
                    nets(side.out);
            while (block.shift < 5 && 9u << block.shift < 8 * block.width)
                block.shift++;
            block.words.assign(1u << (14 - block.shift), 0);
            blocks_.push_back(block);
        } else if (kind == "mult") {
            Mult mult{};
            net(mult.sign_a), net(mult.sign_b), nets(mult.a), nets(mult.b), nets(mult.out);
            mults_.push_back(mult);
        } else {
            throw bad();
        }
        if (words.fail() && kind != "input" && kind != "output")
            throw bad();
    }
    for (auto& [shared, group] : flops) {
        banks_.push_back({std::get<0>(shared), std::get<1>(shared), uint32_t(flops_.size()),
                          uint32_t(flops_.size() + group.size())});
        flops_.insert(flops_.end(), group.begin(), group.end());
    }
}

const Gates::Port& Gates::port(const std::string& name) const
{
    for (auto* ports : {&inputs_, &outputs_})
        for (auto& [known, port] : *ports)
            if (known == name)
                return port;
    throw std::runtime_error("the netlist has no port " + name);
}

/* Order ---------------------------------------------------------------------------------------- */

template <typename F>
void Gates::inputs_of(uint32_t gate, F use) const
{
    auto all = [&](auto& nets) {
        for (Net net : nets)
            use(net);
    };
    if (gate < luts_.size()) {
        all(luts_[gate].in);
    } else if (gate < luts_.size() + rams_.size()) {
        all(rams_[gate - luts_.size()].read);
    } else {
        const Mult& mult = mults_[gate - luts_.size() - rams_.size()];
        use(mult.sign_a), use(mult.sign_b), all(mult.a), all(mult.b);
    }
}

template <typename F>
void Gates::outputs_of(uint32_t gate, F use) const
{
    auto all = [&](auto& nets) {
        for (Net net : nets)
            use(net);
    };
    if (gate < luts_.size())
        use(luts_[gate].out);
    else if (gate < luts_.size() + rams_.size())
        all(rams_[gate - luts_.size()].out);
    else
        all(mults_[gate - luts_.size() - rams_.size()].out);
}

/* Readers of each net, and levels. A gate is ready when all inputs that other gates drive are
 * ready. */
void Gates::order()
{
    uint32_t gates = luts_.size() + rams_.size() + mults_.size();
    std::vector<uint8_t> driven(values_.size());
    auto drive = [&](Net net) {
        if (net < 2 || driven[net]++)
            throw std::runtime_error("the netlist drives net " + std::to_string(net) + " twice");
    };
    for (auto& [name, port] : inputs_)
        for (Net net : port)
            drive(net);
    for (auto& flop : flops_)
        drive(flop.out);
    for (auto& block : blocks_)
        for (auto& side : block.side)
            for (Net net : side.out)
                drive(net);

    fanout_.assign(values_.size() + 1, 0);
    for (uint32_t gate = 0; gate < gates; gate++)
        inputs_of(gate, [&](Net net) { fanout_[net + 1]++; });
    for (size_t net = 1; net < fanout_.size(); net++)
        fanout_[net] += fanout_[net - 1];
    readers_.resize(fanout_.back());
    std::vector<uint32_t> next(fanout_.begin(), fanout_.end() - 1);
    for (uint32_t gate = 0; gate < gates; gate++)
        inputs_of(gate, [&](Net net) { readers_[next[net]++] = gate; });

    std::vector<uint32_t> missing(gates), ready;
    std::vector<uint8_t> by_gate(values_.size());
    for (uint32_t gate = 0; gate < gates; gate++)
        outputs_of(gate, [&](Net net) { drive(net), by_gate[net] = 1; });
    for (uint32_t gate = 0; gate < gates; gate++) {
        inputs_of(gate, [&](Net net) { missing[gate] += by_gate[net]; });
        if (!missing[gate])
            ready.push_back(gate);
    }
    level_.assign(gates, 0);
    for (size_t n = 0; n < ready.size(); n++)
        outputs_of(ready[n], [&](Net net) {
            for (uint32_t r = fanout_[net]; r < fanout_[net + 1]; r++) {
                uint32_t reader = readers_[r];
                level_[reader] = std::max<uint16_t>(level_[reader], level_[ready[n]] + 1);
                if (!--missing[reader])
                    ready.push_back(reader);
            }
        });
    if (ready.size() < gates)
        throw std::runtime_error("the netlist has a loop through logic");
    waiting_.assign(gates, 0);
    for (uint32_t gate = 0; gate < gates; gate++) {
        levels_.resize(std::max<size_t>(levels_.size(), level_[gate] + 1));
        visit(gate);
    }
}

/* Simulation ----------------------------------------------------------------------------------- */

void Gates::visit(uint32_t gate)
{
    if (!waiting_[gate]) {
        waiting_[gate] = 1;
        levels_[level_[gate]].push_back(gate);
    }
}

void Gates::change(Net net, bool value)
{
    if (values_[net] == value)
        return;
    values_[net] = value;
    for (uint32_t r = fanout_[net]; r < fanout_[net + 1]; r++)
        visit(readers_[r]);
}

uint64_t Gates::gather(const Net* nets, unsigned bits) const
{
    uint64_t value = 0;
    for (unsigned n = 0; n < bits; n++)
        value |= uint64_t(values_[nets[n]]) << n;
    return value;
}

void Gates::set(const Port& port, const void* bytes)
{
    for (size_t n = 0; n < port.size(); n++)
        change(port[n], static_cast<const uint8_t*>(bytes)[n / 8] >> n % 8 & 1);
}

void Gates::get(const Port& port, void* bytes) const
{
    auto* to = static_cast<uint8_t*>(bytes);
    for (size_t n = 0; n < port.size(); n++)
        to[n / 8] = (n % 8 ? to[n / 8] : 0) | values_[port[n]] << n % 8;
}

void Gates::evaluate(uint32_t gate)
{
    if (gate < luts_.size()) {
        const Lut& lut = luts_[gate];
        change(lut.out, lut.table >> gather(lut.in, 4) & 1);
    } else if (gate < luts_.size() + rams_.size()) {
        const Ram16& ram = rams_[gate - luts_.size()];
        uint8_t word = ram.words[gather(ram.read, 4)];
        for (unsigned n = 0; n < 4; n++)
            change(ram.out[n], word >> n & 1);
    } else {
        const Mult& mult = mults_[gate - luts_.size() - rams_.size()];
        auto factor = [&](const Net* nets, Net sign) {
            int64_t value = gather(nets, 18);
            return values_[sign] && value >> 17 ? value - (1 << 18) : value;
        };
        int64_t product = factor(mult.a, mult.sign_a) * factor(mult.b, mult.sign_b);
        for (unsigned n = 0; n < 36; n++)
            change(mult.out[n], product >> n & 1);
    }
}

void Gates::settle()
{
    for (auto& level : levels_) {
        for (uint32_t gate : level) {
            waiting_[gate] = 0;
            evaluate(gate);
        }
        level.clear();
    }
}

/* Lattice FPGA-TN-02204. At 18 and 36 bits the low bits of the address of a port that writes are
 * byte enables; at 36, port A writes and port B reads, and both ports' pins are the word's. */
void Gates::clock_block(Block& block)
{
    bool wide = block.width == 36;
    uint64_t all = (uint64_t(1) << block.width) - 1, mask[2] = {}, old[2];
    unsigned address[2];
    bool enable[2], write[2];
    for (unsigned s = 0; s < 2; s++) {
        const Side& side = block.side[s];
        enable[s] = values_[side.enable];
        write[s] = enable[s] && values_[side.write];
        address[s] = gather(side.address, 14);
        if (write[s]) {
            mask[s] = all;
            if (block.width >= 18)
                for (unsigned lane = 0; lane < block.width / 9; lane++)
                    if (!(address[s] >> lane & 1))
                        mask[s] &= ~(uint64_t(0x1ff) << 9 * lane);
        }
        address[s] >>= block.shift;
        old[s] = block.words[address[s]];
    }
    for (unsigned s = wide; s < 2; s++) {
        Side& side = block.side[s];
        if (!enable[s] || (write[s] && !block.old[s]))
            continue;
        uint64_t word = old[s] ^ (address[0] == address[1] ? mask[!s] : 0);
        uint64_t changed = word ^ side.read;
        side.read = word;
        for (unsigned n = 0; changed >> n; n++)
            if (changed >> n & 1)
                taken_.emplace_back(wide ? block.side[n / 18].out[n % 18] : side.out[n],
                                    word >> n & 1);
    }
    for (unsigned s = 0; s < 2; s++) {
        if (!mask[s])
            continue;
        uint64_t data = gather(block.side[s].in, 18);
        if (wide)
            data |= gather(block.side[1].in, 18) << 18;
        uint64_t& word = block.words[address[s]];
        word = (word & ~mask[s]) | (data & mask[s]);
    }
}

void Gates::clock()
{
    taken_.clear();
    for (const Bank& bank : banks_) {
        bool reset = values_[bank.reset];
        if (!reset && !values_[bank.enable])
            continue;
        for (uint32_t f = bank.first; f < bank.last; f++) {
            const Flop& flop = flops_[f];
            uint8_t next = reset ? flop.reset : values_[flop.in];
            if (next != values_[flop.out])
                taken_.emplace_back(flop.out, next);
        }
    }
    for (uint32_t n = 0; n < rams_.size(); n++) {
        Ram16& ram = rams_[n];
        if (values_[ram.we]) {
            ram.words[gather(ram.write, 4)] = gather(ram.data, 4);
            visit(luts_.size() + n);
        }
    }
    for (Block& block : blocks_)
        clock_block(block);
    for (auto [net, value] : taken_)
        change(net, value);
}

} // namespace dibber
