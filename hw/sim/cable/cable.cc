/* SPDX-License-Identifier: BSD-2-Clause */

#include "cable.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace dibber {

namespace {

constexpr unsigned symbols_per_word = 4, bits_per_word = 40;

/* Words of noise before a receiver notices that the signal has gone. */
constexpr unsigned noise_words = 16;

constexpr uint32_t comma = 0xbc; /* K28.5 */

constexpr const char* fault_names[] = {"unplugged", "noise",   "stop",    "inverted",
                                       "rate",      "foreign", "loopback"};

double number(const std::string& text, const std::string& field)
{
    double value = -1;
    auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() ||
        !(value >= 0 && value <= 1e12)) /* NaN too */
        throw std::invalid_argument("'" + text + "': '" + field +
                                    "' is no time in microseconds, or no direction");
    return value;
}

} // namespace

CableFault parse_fault(const std::string& text)
{
    std::vector<std::string> fields(1);
    for (char c : text) {
        if (c == ':')
            fields.emplace_back();
        else
            fields.back() += c;
    }
    auto name = std::find(std::begin(fault_names), std::end(fault_names), fields[0]);
    if (name == std::end(fault_names) ||
        (fields.size() != 1 && fields.size() != 3 && fields.size() != 4))
        throw std::invalid_argument(
            "'" + text +
            "' is not KIND[:T0:T1[:DIRECTION]] with KIND unplugged, noise, stop, "
            "inverted, rate, foreign or loopback");
    CableFault fault{CableFault::Kind(name - fault_names)};
    if (fields.size() > 1) {
        fault.from = from_ns(number(text, fields[1]) * 1e3);
        fault.until = from_ns(number(text, fields[2]) * 1e3);
        if (fault.until < fault.from || fault.kind == CableFault::loopback)
            throw std::invalid_argument("'" + text + "': " +
                                        (fault.kind == CableFault::loopback
                                             ? "a loopback is for the whole run"
                                             : "it ends before it begins"));
    }
    if (fields.size() > 3) {
        fault.direction = int(number(text, fields[3]));
        if (fault.direction > 1)
            throw std::invalid_argument("'" + text + "': the direction is 0 or 1");
    }
    return fault;
}

Cable::Cable(const Profile& profile, uint64_t seed, CableDirection direction)
    : word_(Time(bits_per_word * 1e3 / profile.link.rate_gbps + 0.5)), period_(profile.period()),
      delay_(profile.cable_delay(direction.length_m)),
      turn_(from_ns(profile.link.transmit_ns + profile.link.receive_ns)),
      random_(seed, direction.stream), plugged_(direction.plugged),
      bit_error_rate_(direction.bit_error_rate), faults_(std::move(direction.faults)),
      rates_(std::move(direction.rates))
{
    if (profile.link.mtu != 0 && plugged_) {
        direction.faults = faults_;
        direction.rates = rates_;
        frames_ = std::make_unique<FrameCable>(profile, seed, direction);
    }
    if (profile.is_bonded() && plugged_) {
        direction.faults = faults_;
        direction.rates = rates_;
        lanes_ = std::make_unique<LaneCable>(profile, seed, direction);
    }
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](auto& a, auto& b) { return a.from < b.from; });
    draw_next_error();
}

void Cable::draw_next_error()
{
    bits_to_error_ = bit_error_rate_ > 0 ? random_.failures(bit_error_rate_) : ~uint64_t(0);
}

/* Take the bit error rate that holds for a word that begins at `start`. */
void Cable::follow_rate(Time start)
{
    for (; next_rate_ < rates_.size() && rates_[next_rate_].first <= start; next_rate_++) {
        bit_error_rate_ = rates_[next_rate_].second;
        draw_next_error();
    }
}

/* Sender --------------------------------------------------------------------------------------- */

void Cable::drive_transmit(SerialInputs& in, Time now) const
{
    if (frames_)
        return frames_->drive_transmit(in, now);
    if (lanes_)
        return lanes_->drive_transmit(in, now);
    in.serial_tx_ready = next_word_ < now + period_;
}

void Cable::sample_transmit(const SerialInputs& in, const SerialOutputs& out, Time now)
{
    if (frames_)
        return frames_->sample_transmit(in, out, fault_at(now), now, statistics_);
    if (lanes_)
        return lanes_->sample_transmit(in, out, fault_at(now), now, statistics_);
    if (!in.serial_tx_ready)
        return;
    Time start = std::max(next_word_, now);
    next_word_ = start + word_;
    statistics_.words++;
    follow_rate(start);
    const CableFault* fault = fault_at(start);
    if (out.serial_loopback) {
        looped_.push_back({start + turn_, true, true, out.serial_tx, 0, 0});
        fall_silent(start, 0);
        return;
    }
    looped_.clear();
    if (!plugged_)
        return;
    if (fault && fault->kind == CableFault::unplugged) {
        statistics_.lost_words++;
        fall_silent(start, noise_words);
        return;
    }
    cut_words_ = 0;
    Arrival arrival = carry(out.serial_tx, fault);
    arrival.at = start + delay_;
    sent_.push_back(arrival);
}

void Cable::stay_dark(Time now)
{
    if (frames_)
        return frames_->stay_dark(now);
    if (lanes_)
        return lanes_->stay_dark(now);
    looped_.clear();
    if (next_word_ >= now + period_)
        return;
    Time start = std::max(next_word_, now);
    next_word_ = start + word_;
    follow_rate(start);
    fault_at(start);
    fall_silent(start, noise_words);
}

/* A word that is not sent: so many are `noisy`, and from the next on the other end sees no signal.
 */
void Cable::fall_silent(Time start, unsigned noisy)
{
    if (cut_words_ > noisy)
        return;
    Arrival arrival = cut_words_ < noisy ? noise() : Arrival{};
    arrival.at = start + delay_;
    sent_.push_back(arrival);
    cut_words_++;
}

/* The first active fault. Overlapping faults of one direction have no meaning. */
const CableFault* Cable::fault_at(Time now)
{
    while (next_fault_ < faults_.size() && faults_[next_fault_].until <= now)
        next_fault_++;
    bool on = next_fault_ < faults_.size() && faults_[next_fault_].from <= now;
    return on ? &faults_[next_fault_] : nullptr;
}

Cable::Arrival Cable::carry(Symbols symbols, const CableFault* fault)
{
    uint16_t wires = 0;
    if (fault && (fault->kind == CableFault::noise || fault->kind == CableFault::rate))
        return noise();
    if (fault && fault->kind == CableFault::foreign)
        symbols = {uint32_t(random_.below(uint64_t(1) << 32)), 0};
    if (fault && fault->kind == CableFault::stop && (symbols.k & 1) &&
        (symbols.data & 0xff) == comma) {
        uint32_t flow = (symbols.data >> 8 | 0x0f) & 0xff;
        symbols.data = (symbols.data & 0xff0000ff) | flow << 8 | (~flow & 0xff) << 16;
    }
    if (fault && fault->kind == CableFault::inverted)
        wires = 0x3ff;
    unsigned characters[symbols_per_word];
    bool plain = bits_to_error_ >= bits_per_word && tx_disparity_ == rx_disparity_ && !wires;
    for (unsigned i = 0; i < symbols_per_word; i++) {
        characters[i] = (symbols.k >> i & 1) << 8 | (symbols.data >> 8 * i & 0xff);
        plain &= code_.exists(characters[i]);
    }
    if (plain) {
        /* Encoder and decoder agree and no error hits the word: it arrives unchanged. */
        for (unsigned character : characters)
            tx_disparity_ ^= code_.turns(character);
        rx_disparity_ = tx_disparity_;
        bits_to_error_ -= bits_to_error_ == ~uint64_t(0) ? 0 : bits_per_word;
        return {0, true, true, symbols, 0, 0};
    }
    Arrival out = {0, true, true, {}, 0, 0};
    for (unsigned i = 0; i < symbols_per_word; i++) {
        uint16_t symbol = code_.encode(uint8_t(characters[i]), characters[i] >> 8, tx_disparity_);
        if (symbol == Code8b10b::no_symbol)
            symbol = 0;
        uint64_t bits = 10;
        while (bits_to_error_ < bits) {
            symbol ^= uint16_t(0x200 >> (10 - bits + bits_to_error_));
            bits -= bits_to_error_ + 1;
            statistics_.bit_errors++;
            draw_next_error();
        }
        bits_to_error_ -= bits_to_error_ == ~uint64_t(0) ? 0 : bits;
        decode(i, symbol ^ wires, out);
    }
    return out;
}

Cable::Arrival Cable::noise()
{
    Arrival out = {0, true, true, {}, 0, 0};
    for (unsigned i = 0; i < symbols_per_word; i++)
        decode(i, uint16_t(random_.below(1024)), out);
    return out;
}

void Cable::decode(unsigned place, uint16_t symbol, Arrival& out)
{
    auto decoded = code_.decode(symbol, rx_disparity_);
    out.symbols.data |= uint32_t(decoded.byte) << 8 * place;
    out.symbols.k |= uint8_t(decoded.k << place);
    out.code_error |= uint8_t(decoded.code_error << place);
    out.disparity_error |= uint8_t(decoded.disparity_error << place);
    statistics_.code_errors += decoded.code_error;
    statistics_.disparity_errors += decoded.disparity_error;
}

/* Receiver ------------------------------------------------------------------------------------- */

void Cable::meet(bool received)
{
    if (frames_)
        return frames_->meet(received);
    if (lanes_)
        return lanes_->meet(received);
    if (received)
        arriving_.insert(arriving_.end(), sent_.begin(), sent_.end());
    sent_.clear();
}

/* The next word of `arriving`, if it is there by now. */
bool Cable::deliver(std::deque<Arrival>& arriving, SerialInputs& in, Time now)
{
    in.serial_rx_valid = false;
    if (arriving.empty() || arriving.front().at > now)
        return false;
    const Arrival& word = arriving.front();
    in.serial_rx_signal = word.signal;
    in.serial_rx_valid = word.valid;
    in.serial_rx = word.symbols;
    in.serial_rx_code_error = word.code_error;
    in.serial_rx_disparity_error = word.disparity_error;
    arriving.pop_front();
    return true;
}

void Cable::drive_receive(SerialInputs& in, Time now)
{
    if (frames_)
        return frames_->drive_receive(in, now);
    if (lanes_)
        return lanes_->drive_receive(in, now);
    if (deliver(arriving_, in, now))
        signal_ = in.serial_rx_signal;
    in.serial_rx_signal = signal_;
}

void Cable::drive_loopback(SerialInputs& in, Time now)
{
    deliver(looped_, in, now);
    in.serial_rx_signal = true;
}

} // namespace dibber
