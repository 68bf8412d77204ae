/* Base of devices written in C++: beats to TLPs and back, no limits of its own. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>

#include "../device.h"
#include "../host/tlp.h"

namespace dibber {

class StreamDevice : public Device {
public:
    explicit StreamDevice(unsigned data_width) : data_width_(data_width), beat_dws_(data_width / 32)
    {
    }

    unsigned data_width() const override { return data_width_; }
    bool big_endian() const override { return true; }
    void settle(const Inputs& in, Outputs& out) override;
    void clock(const Inputs& in) override;

protected:
    /* A whole TLP has come. */
    virtual void received(const Tlp& tlp) = 0;

    void send(Tlp tlp) { queue_.push_back(std::move(tlp)); }
    size_t waiting() const { return queue_.size(); }

private:
    const unsigned data_width_, beat_dws_;
    std::deque<Tlp> queue_;
    unsigned position_ = 0;
    Tlp coming_;
};

} // namespace dibber
