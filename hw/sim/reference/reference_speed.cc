/* Simulation speed of the bare reference model: a VexRiscv and LitePCIe with its DMA writing all
 * the time, no host model, no cable, Verilated with the flags of our card. JSON on standard output:
 *
 *     reference-speed-128 [SECONDS]
 *     {"cycles": …, "cpu_seconds": …, "cycles_per_cpu_second": …, "writes": …}
 *
 * SECONDS are of CPU time, and so are those of the result.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "../host/root_complex.h"
#include "litepcie.h"

using namespace dibber;

namespace {

constexpr unsigned beat_dws = LITEPCIE_DATA_WIDTH / 32;

/* Seconds of CPU time. */
double now()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

class Bare {
public:
    Bare()
    {
        in_.pcie_tx_ready = true;
        in_.pcie_id = RootComplex::card_id;
        in_.pcie_max_payload = 256;
        in_.pcie_max_request = 512;
        in_.reset = true;
        run(16);
        in_.reset = false;
        run(64);
    }

    void run(uint64_t cycles)
    {
        for (uint64_t i = 0; i < cycles; i++) {
            device_.settle(in_, out_);
            writes_ += out_.pcie_tx.valid && out_.pcie_tx.last;
            device_.clock(in_);
        }
    }

    /* A register of BAR 0, as one memory write. */
    void write(uint32_t offset, uint32_t value)
    {
        uint8_t bytes[4];
        std::memcpy(bytes, &value, 4);
        Tlp tlp = memory_write(RootComplex::host_id, RootComplex::bar_base + offset, bytes);
        unsigned total = unsigned(tlp.dw.size()), header = tlp.header_dws();
        for (unsigned position = 0; position < total; position += beat_dws) {
            Beat& beat = in_.pcie_rx;
            beat = {};
            beat.valid = true;
            beat.first = position == 0;
            beat.last = position + beat_dws >= total;
            for (unsigned i = 0; i < beat_dws && position + i < total; i++) {
                uint32_t dw = tlp.dw[position + i];
                beat.dat[i] = position + i < header ? dw : __builtin_bswap32(dw);
                beat.be |= 0xfu << 4 * i;
            }
            do
                run(1);
            while (!out_.pcie_rx_ready);
        }
        in_.pcie_rx = {};
    }

    uint64_t writes() const { return writes_; }

private:
    Litepcie device_;
    Inputs in_;
    Outputs out_;
    uint64_t writes_ = 0;
};

} // namespace

int main(int argc, char** argv)
{
    double seconds = argc > 1 ? strtod(argv[1], nullptr) : 2;
    Bare bare;
    start_dma(Half::writer, {{0x1000000, 65536}, {0x1010000, 65536}}, true,
              [&](uint32_t offset, uint32_t value) { bare.write(offset, value); });
    constexpr uint64_t slice = 10000;
    bare.run(slice);
    uint64_t before = bare.writes(), cycles = 0;
    double start = now(), elapsed = 0;
    for (; elapsed < seconds; elapsed = now() - start) {
        bare.run(slice);
        cycles += slice;
    }
    uint64_t writes = bare.writes() - before;
    if (writes < cycles / 100) {
        fprintf(stderr, "reference-speed: the DMA does not run: %llu writes in %llu cycles\n",
                (unsigned long long)writes, (unsigned long long)cycles);
        return 1;
    }
    printf("{\"cycles\": %llu, \"cpu_seconds\": %.3f, \"cycles_per_cpu_second\": %.0f, "
           "\"writes\": %llu}\n",
           (unsigned long long)cycles, elapsed, double(cycles) / elapsed,
           (unsigned long long)writes);
    return 0;
}
