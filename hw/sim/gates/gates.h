/* A netlist cycle by cycle, without delays: the gates of hw/synthesis/gates.py, which explains the
 * format of their list.
 *
 * Only changes are simulated: a gate is evaluated when one of its inputs has changed, after all
 * gates that it depends on. If a block RAM's port reads bits that the other port writes in the same
 * cycle, they are undefined. Here it gets wrong bits, the complement of the old ones. All elements
 * start with the values of the list; memories, and values that the list lacks, start with 0. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dibber {

class Gates {
public:
    using Net = uint32_t;
    using Port = std::vector<Net>; /* bit 0 first */

    /* Throws std::runtime_error: no such file, not such a list, a net of two drivers, a loop
     * through logic. */
    explicit Gates(const std::string& path);

    /* In the order of the list. */
    const std::vector<std::pair<std::string, Port>>& inputs() const { return inputs_; }
    const std::vector<std::pair<std::string, Port>>& outputs() const { return outputs_; }

    /* Throws std::runtime_error if there is no port of this name. */
    const Port& port(const std::string& name) const;

    /* `bytes`, little-endian, hold the port's bits. */
    void set(const Port& port, const void* bytes);
    void get(const Port& port, void* bytes) const;

    /* Evaluate until the output of every gate fits its inputs. */
    void settle();

    /* The rising edge; the outputs are those before it until settle(). */
    void clock();

private:
    struct Lut {
        uint16_t table;
        Net out, in[4];
    };
    struct Ram16 {
        Net out[4], we, write[4], data[4], read[4];
        uint8_t words[16];
    };
    struct Mult {
        Net sign_a, sign_b, a[18], b[18], out[36];
    };
    struct Flop {
        Net out, in;
        uint8_t reset;
    };
    struct Bank {
        Net enable, reset;
        uint32_t first, last;
    }; /* flip-flops that share both */
    struct Side {
        Net enable, write, address[14], in[18], out[18];
        uint64_t read;
    };
    struct Block {
        unsigned width, shift;
        bool old[2];
        Side side[2];
        std::vector<uint64_t> words;
    };

    void read(const std::string& path);
    void order();
    void change(Net net, bool value);
    void visit(uint32_t gate);
    uint64_t gather(const Net* nets, unsigned bits) const;
    void evaluate(uint32_t gate);
    void clock_block(Block& block);
    template <typename F>
    void inputs_of(uint32_t gate, F use) const;
    template <typename F>
    void outputs_of(uint32_t gate, F use) const;

    std::vector<uint8_t> values_; /* of each net */
    std::vector<std::pair<std::string, Port>> inputs_, outputs_;
    std::vector<Lut> luts_; /* gates are numbered: LUTs, then LUT memories, then multipliers */
    std::vector<Ram16> rams_;
    std::vector<Mult> mults_;
    std::vector<Flop> flops_;
    std::vector<Bank> banks_;
    std::vector<Block> blocks_;

    std::vector<uint32_t> fanout_,
        readers_; /* readers_[fanout_[net] … fanout_[net + 1]): gates that read a net */
    std::vector<uint16_t> level_;  /* of a gate: above those of all gates that it depends on */
    std::vector<uint8_t> waiting_; /* whether a gate is in its level's list */
    std::vector<std::vector<uint32_t>> levels_;
    std::vector<std::pair<Net, uint8_t>> taken_; /* at an edge */
};

} // namespace dibber
