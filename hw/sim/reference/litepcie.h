/* The stock LitePCIe DMA of litepcie_top.py as a device of the simulator. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../device.h"

class Vlitepcie_reference;
class VerilatedContext;

namespace dibber {

class Litepcie : public Device {
public:
    /* A word of the DMA's reader for its user: 64 bits and the cycle. */
    struct Word {
        uint64_t cycle, data;
    };

    Litepcie();
    ~Litepcie() override;

    unsigned data_width() const override { return LITEPCIE_DATA_WIDTH; }
    bool big_endian() const override { return true; }
    void settle(const Inputs& in, Outputs& out) override;
    void clock(const Inputs& in) override;

    const std::vector<Word>& words() const { return words_; }

private:
    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vlitepcie_reference> model_;
    uint64_t cycle_ = 0;
    std::vector<Word> words_;
};

/* The two halves of the DMA. */
enum class Half { writer, reader };

/* A part of memory for the DMA: multiples of the data width, below 4 GiB and 16 MiB long at most.
 */
struct Descriptor {
    uint32_t address, bytes;
};

/* Let the DMA execute `descriptors`, once or for ever, as LitePCIe's driver does: table in "prog"
 * mode, then the mode, then enable. `write` stores a 32-bit register of BAR 0. */
void start_dma(Half half, const std::vector<Descriptor>& descriptors, bool for_ever,
               const std::function<void(uint32_t offset, uint32_t value)>& write);

} // namespace dibber
