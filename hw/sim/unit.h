/* Units of simulation: a card with its PCIe block, or a switch.
 *
 * A unit runs some cycles in one thread. It touches nothing of another unit meanwhile: a word that
 * it sends waits in its own end of the cable until the units meet, and the cable's delay is at
 * least as long as what units run between two meetings. So it does not matter which unit runs
 * first, or in which thread.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cable/cable.h"
#include "device.h"
#include "host/phy.h"
#include "jtag/jtag.h"
#include "pins.h"
#include "switch_device.h"
#include "timeline/card_timeline.h"

namespace dibber {

/* Cycles that a unit is held in reset when it gets power, or when a client resets its card. */
constexpr unsigned reset_length = 16;

/* What a serial port is joined to. */
struct SerialPort {
    std::unique_ptr<Cable> leaving;
    Cable* coming = nullptr; /* that of the other end; none: the port hears nothing */
    bool received = false;   /* the other end is there */
};

class Unit {
public:
    virtual ~Unit() = default;

    std::span<SerialPort> ports() { return ports_; }
    std::span<const SerialPort> ports() const { return ports_; }

    /* Run `cycles` cycles of the clock, of which the first has number `first`. */
    virtual void run(uint64_t first, unsigned cycles) = 0;

    /* Between runs. What was sent goes on its way. */
    void meet();

    /* Between runs. A unit that is off sends nothing; on, it comes back as new. */
    void set_power(bool on);
    bool has_power() const { return powered_; }

protected:
    Unit(const Profile& profile, std::vector<SerialPort> ports);

    /* The serial side of a cycle. */
    void drive(unsigned port, SerialInputs& in, const SerialOutputs& out, Time now);

    /* Between runs: the power goes, and later the unit is made anew. */
    virtual void forget() = 0;
    virtual void renew() = 0;

    const Time period_;
    std::vector<SerialPort> ports_;
    unsigned reset_cycles_ = reset_length;
    bool powered_ = true;
};

/* A card: the device, its PCIe block, and its JTAG pins. Its host is run by the simulation. */
class CardUnit : public Unit {
public:
    using Make = std::function<std::unique_ptr<Device>()>;

    CardUnit(const Profile& profile, std::vector<SerialPort> ports, Make make, bool trace);

    void run(uint64_t first, unsigned cycles) override;

    /* Between runs: a reset of the card by its host. `loses_power`: nothing is kept. */
    void reset(bool loses_power);

    Device& device() { return *device_; }
    unsigned lives() const { return lives_; }

    Phy phy;
    Inputs in;                                   /* what its host sets lies here between runs */
    std::unique_ptr<Jtag> jtag;                  /* if somebody may debug it */
    std::unique_ptr<PinsWriter> pins;            /* if they are recorded */
    const std::vector<uint8_t>* image = nullptr; /* of its control program, after a reset */
    CardTimeline* timeline = nullptr;            /* if there is one */

    /* Between runs: the cycle in which its last reset ended. */
    uint64_t begun() const { return begun_; }

private:
    CardUnit(const Profile& profile, std::vector<SerialPort> ports, Make make,
             std::unique_ptr<Device> device, bool trace);
    void renew() override;
    void forget() override;
    void show(Time now);
    void drive_all(Time now); /* its one or two serial ports */

    Make make_;
    std::unique_ptr<Device> device_;
    Outputs out_;
    unsigned lives_ = 0; /* how often it has lost power */
    uint64_t begun_ = 0;
};

class SwitchUnit : public Unit {
public:
    using Make = std::function<std::unique_ptr<SwitchDevice>()>;

    SwitchUnit(const Profile& profile, std::vector<SerialPort> ports, Make make);

    void run(uint64_t first, unsigned cycles) override;

private:
    void renew() override { device_ = make_(); }
    void forget() override { out_.assign(out_.size(), {}); }

    Make make_;
    std::unique_ptr<SwitchDevice> device_;
    std::vector<SerialInputs> in_;
    std::vector<SerialOutputs> out_;
};

} // namespace dibber
