/* SPDX-License-Identifier: BSD-2-Clause */

#include "stream.h"

namespace dibber {

void StreamDevice::settle(const Inputs&, Outputs& out)
{
    out.pcie_rx_ready = true;
    out.serial_tx = {0xbc, 1};
    Beat& beat = out.pcie_tx;
    beat.valid = !queue_.empty();
    if (!beat.valid)
        return;
    const Tlp& tlp = queue_.front();
    beat.first = position_ == 0;
    beat.last = position_ + beat_dws_ >= tlp.dw.size();
    beat.be = 0;
    for (unsigned i = 0; i < beat_dws_; i++) {
        unsigned n = position_ + i;
        bool there = n < tlp.dw.size();
        beat.dat[i] = !there ? 0 : n >= tlp.header_dws() ? __builtin_bswap32(tlp.dw[n]) : tlp.dw[n];
        beat.be |= (there ? 0xfu : 0u) << 4 * i;
    }
}

void StreamDevice::clock(const Inputs& in)
{
    if (!queue_.empty() && in.pcie_tx_ready) {
        position_ += beat_dws_;
        if (position_ >= queue_.front().dw.size()) {
            queue_.pop_front();
            position_ = 0;
        }
    }
    if (!in.pcie_rx.valid)
        return;
    if (in.pcie_rx.first)
        coming_.dw.clear();
    for (unsigned i = 0; i < beat_dws_; i++)
        if (in.pcie_rx.be >> 4 * i & 1) {
            bool payload = coming_.dw.size() >= 3 && coming_.dw.size() >= coming_.header_dws();
            coming_.dw.push_back(payload ? __builtin_bswap32(in.pcie_rx.dat[i])
                                         : in.pcie_rx.dat[i]);
        }
    if (in.pcie_rx.last)
        received(coming_);
}

} // namespace dibber
