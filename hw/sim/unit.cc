/* SPDX-License-Identifier: BSD-2-Clause */

#include "unit.h"

namespace dibber {

Unit::Unit(const Profile& profile, std::vector<SerialPort> ports)
    : period_(profile.period()), ports_(std::move(ports))
{
}

void Unit::meet()
{
    for (auto& port : ports_)
        port.leaving->meet(port.received);
}

void Unit::set_power(bool on)
{
    powered_ = on;
    if (!on)
        return forget();
    renew();
    reset_cycles_ = reset_length;
}

void Unit::drive(unsigned number, SerialInputs& in, const SerialOutputs& out, Time now)
{
    SerialPort& port = ports_[number];
    port.leaving->drive_transmit(in, now);
    if (port.coming)
        port.coming->drive_receive(in, now);
    if (out.serial_loopback)
        port.leaving->drive_loopback(in, now);
}

/* Card ----------------------------------------------------------------------------------------- */

CardUnit::CardUnit(const Profile& profile, std::vector<SerialPort> ports, Make make, bool trace)
    : CardUnit(profile, std::move(ports), make, make(), trace)
{
}

CardUnit::CardUnit(const Profile& profile, std::vector<SerialPort> ports, Make make,
                   std::unique_ptr<Device> device, bool trace)
    : Unit(profile, std::move(ports)),
      phy(profile, device->data_width(), device->big_endian(), trace), make_(std::move(make)),
      device_(std::move(device))
{
}

void CardUnit::renew()
{
    device_ = make_();
    lives_++;
}

void CardUnit::forget()
{
    out_ = {};
    phy.reset();
}

void CardUnit::reset(bool loses_power)
{
    if (loses_power && powered_)
        renew();
    phy.reset();
    reset_cycles_ = reset_length;
}

/* The link's words of this cycle, for the timeline. */
void CardUnit::show(Time now)
{
    Time word = ports_[0].leaving->word();
    if (in.serial_tx_ready && !in.reset)
        timeline->sent(out_.serial_tx, now, word);
    timeline->heard(in, now, word);
}

void CardUnit::drive_all(Time now)
{
    drive(0, in, out_, now);
    if (ports_.size() > 1)
        drive(1, in.second, out_.second, now);
}

void CardUnit::run(uint64_t first, unsigned cycles)
{
    Time now = first * period_;
    for (unsigned i = 0; i < cycles; i++, now += period_) {
        if (!powered_) {
            drive_all(now);
            for (auto& port : ports_)
                port.leaving->stay_dark(now);
            if (jtag) {
                jtag->drive(in);
                jtag->sample(out_);
            }
            continue;
        }
        in.reset = reset_cycles_ > 0;
        reset_cycles_ -= in.reset;
        phy.drive(in, now);
        drive_all(now);
        if (jtag)
            jtag->drive(in);
        device_->settle(in, out_);
        if (pins)
            pins->write(lives_, in, out_);
        if (jtag)
            jtag->sample(out_);
        if (in.reset)
            begun_ = first + i + 1;
        if (timeline)
            show(now);
        if (!in.reset) {
            phy.sample(in, out_, now);
            ports_[0].leaving->sample_transmit(in, out_, now);
            if (ports_.size() > 1)
                ports_[1].leaving->sample_transmit(in.second, out_.second, now);
        }
        device_->clock(in);
        /* Only now is no store of the last program under way any more. */
        if (in.reset && reset_cycles_ == 0 && image)
            device_->preload(*image);
    }
}

/* Switch --------------------------------------------------------------------------------------- */

SwitchUnit::SwitchUnit(const Profile& profile, std::vector<SerialPort> ports, Make make)
    : Unit(profile, std::move(ports)), make_(std::move(make)), device_(make_()), in_(ports_.size()),
      out_(ports_.size())
{
}

void SwitchUnit::run(uint64_t first, unsigned cycles)
{
    Time now = first * period_;
    for (unsigned i = 0; i < cycles; i++, now += period_) {
        bool reset = reset_cycles_ > 0;
        reset_cycles_ -= reset && powered_;
        for (unsigned port = 0; port < ports_.size(); port++)
            drive(port, in_[port], out_[port], now);
        if (powered_)
            device_->settle(reset, in_, out_);
        for (unsigned port = 0; port < ports_.size(); port++) {
            if (!powered_)
                ports_[port].leaving->stay_dark(now);
            else if (!reset)
                ports_[port].leaving->sample_transmit(in_[port], out_[port], now);
        }
        if (powered_)
            device_->clock();
    }
}

} // namespace dibber
