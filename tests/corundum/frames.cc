// SPDX-License-Identifier: BSD-2-Clause
//
// Bench of dibber_frame_path: frames of a NIC and of the core both ways, with random stalls.
//
//   frames SEED SCENARIO TAGGED
//
// SCENARIO: mixed      all sides move at random
//           saturated  both senders always have a frame for 40,000 cycles, and the MAC takes every
//                      beat
//           stalled    the NIC takes no frame; the MAC brings frames of both
//
// It prints one line of counts, or what is wrong, and then ends with 1.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "Vdibber_frame_path.h"

#ifndef WIDTH
#define WIDTH 128
#endif

static const unsigned LANES = WIDTH / 8;

using Bytes = std::vector<uint8_t>;

struct Frame {
	Bytes bytes;
	bool bad = false;
	uint32_t user = 0;
};

static std::mt19937 random_source;
static unsigned random_below(unsigned n)
{
	return random_source() % n;
}

static void fail(const std::string &why)
{
	printf("wrong: %s\n", why.c_str());
	exit(1);
}

static void check(bool good, const char *why)
{
	if (!good)
		fail(why);
}

// Ports of any width, byte by byte.

template <typename T> static void set_byte(T &port, unsigned n, uint8_t value)
{
	memcpy(reinterpret_cast<uint8_t *>(&port) + n, &value, 1);
}

template <typename T> static uint8_t get_byte(const T &port, unsigned n)
{
	return reinterpret_cast<const uint8_t *>(&port)[n];
}

template <typename T> static void set_keep(T &port, unsigned lanes)
{
	port = lanes == 64 ? ~T(0) : T((uint64_t(1) << lanes) - 1);
}

template <typename T> static unsigned lanes_of(const T &port)
{
	uint64_t keep = port;
	unsigned lanes = 0;
	while (lanes < LANES && keep >> lanes & 1)
		lanes++;
	check(lanes == 64 || keep >> lanes == 0, "tkeep has a hole");
	return lanes;
}

// A sender of frames to an AXI-stream. An offer stands until it is taken.
struct Sender {
	std::deque<Frame> queue;
	size_t place = 0;
	bool offers = false;
};

// What has come out of an AXI-stream.
struct Receiver {
	Frame frame;
	std::deque<Frame> frames;
};

// The number of the frame stands in its last four bytes, its side in the byte before.
static Frame make(uint32_t number, uint8_t side, bool ours, bool tagged, unsigned length, bool bad)
{
	Frame frame;
	for (unsigned n = 0; n < length; n++)
		frame.bytes.push_back(random_below(256));
	unsigned at = 12;
	if (tagged && length >= 18) {
		frame.bytes[12] = 0x81, frame.bytes[13] = 0x00;
		at = 16;
	}
	if (length >= at + 2) {
		static const uint8_t other[][2] = { { 0x08, 0x00 },
						    { 0xb5, 0x88 },
						    { 0x88, 0xb4 },
						    { 0x89, 0xb5 },
						    { 0x81, 0x00 } };
		const uint8_t *type = other[random_below(tagged ? 4 : 5)];
		frame.bytes[at] = ours ? 0x88 : type[0];
		frame.bytes[at + 1] = ours ? 0xb5 : type[1];
	}
	frame.bytes[length - 5] = side;
	memcpy(&frame.bytes[length - 4], &number, 4);
	frame.bad = bad;
	frame.user = random_below(1 << 16) << 1 | bad;
	return frame;
}

static unsigned some_length(unsigned least)
{
	switch (random_below(6)) {
	case 0:
		return least + random_below(8);
	case 1:
		return 1518;
	case 2:
		return 9018;
	default:
		return least + random_below(400);
	}
}

static uint32_t number_of(const Frame &frame)
{
	uint32_t number;
	memcpy(&number, &frame.bytes[frame.bytes.size() - 4], 4);
	return number;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	random_source.seed(atoi(argv[1]));
	const std::string scenario = argv[2];
	const bool tagged = atoi(argv[3]);
	const bool saturated = scenario == "saturated", stalled = scenario == "stalled";
	const unsigned cycles = saturated ? 60000 : 120000;

	VerilatedContext context;
	Vdibber_frame_path dut(&context);
	Sender nic, core, mac;
	Receiver to_mac, to_nic, to_core;
	std::deque<Frame> nic_sent, core_sent, nic_due, core_due;
	uint32_t nic_number = 0, core_number = 0, rx_number = 0;
	unsigned nic_dropped = 0, core_dropped = 0, pairs = 0, nic_out = 0, core_out = 0;
	unsigned nic_in = 0, core_in = 0, nic_bytes = 0, core_bytes = 0;
	uint8_t last_side = 0;

	dut.rst = 1;
	for (int n = 0; n < 4; n++) {
		dut.clk = 1, dut.eval();
		dut.clk = 0, dut.eval();
	}
	dut.rst = 0;

	for (unsigned cycle = 0; cycle < cycles; cycle++) {
		const bool last_part = cycle > cycles - 20000;
		// New frames. In the last part nothing new comes, so that all can leave.
		if (!last_part) {
			while (nic.queue.size() < (saturated ? 3 : 1) &&
			       (saturated || random_below(40) == 0)) {
				nic.queue.push_back(make(nic_number++, 1, false, tagged,
							 some_length(60), random_below(9) == 0));
				nic_sent.push_back(nic.queue.back());
			}
			while (core.queue.size() < (saturated ? 3 : 1) &&
			       (saturated || random_below(60) == 0)) {
				bool bad = !saturated && random_below(9) == 0;
				core.queue.push_back(
					make(core_number++, 2, true, tagged, some_length(60), bad));
				// A bad frame of the core is not sent.
				if (!bad)
					core_sent.push_back(core.queue.back());
			}
			if (mac.queue.empty() && random_below(stalled ? 600 : 400) == 0) {
				bool ours = random_below(2);
				mac.queue.push_back(make(rx_number++, ours ? 4 : 3, ours, tagged,
							 some_length(ours ? 60 : 19),
							 random_below(9) == 0));
				(ours ? core_due : nic_due).push_back(mac.queue.back());
				(ours ? core_in : nic_in)++;
			}
		}

		// Offers.
		if (!nic.offers && !nic.queue.empty() && (saturated || random_below(5)))
			nic.offers = true;
		if (!core.offers && !core.queue.empty() && (saturated || random_below(5)))
			core.offers = true;
		mac.offers = !mac.queue.empty() && random_below(8);
		dut.s_tx_tvalid = nic.offers;
		if (nic.offers) {
			const Frame &frame = nic.queue.front();
			unsigned lanes = std::min<size_t>(LANES, frame.bytes.size() - nic.place);
			for (unsigned n = 0; n < lanes; n++)
				set_byte(dut.s_tx_tdata, n, frame.bytes[nic.place + n]);
			set_keep(dut.s_tx_tkeep, lanes);
			dut.s_tx_tlast = nic.place + lanes == frame.bytes.size();
			dut.s_tx_tuser = frame.user;
		}
		dut.core_tx_valid = core.offers;
		if (core.offers) {
			const Frame &frame = core.queue.front();
			unsigned lanes = std::min<size_t>(8, frame.bytes.size() - core.place);
			for (unsigned n = 0; n < lanes; n++)
				set_byte(dut.core_tx_data, n, frame.bytes[core.place + n]);
			dut.core_tx_bytes = lanes;
			dut.core_tx_last = core.place + lanes == frame.bytes.size();
			dut.core_tx_error = frame.bad && dut.core_tx_last;
		}
		dut.s_rx_tvalid = mac.offers;
		if (mac.offers) {
			const Frame &frame = mac.queue.front();
			unsigned lanes = std::min<size_t>(LANES, frame.bytes.size() - mac.place);
			for (unsigned n = 0; n < lanes; n++)
				set_byte(dut.s_rx_tdata, n, frame.bytes[mac.place + n]);
			set_keep(dut.s_rx_tkeep, lanes);
			dut.s_rx_tlast = mac.place + lanes == frame.bytes.size();
			dut.s_rx_tuser = frame.user;
		}
		dut.m_tx_tready = saturated || random_below(4) != 0;
		dut.m_rx_tready = last_part || (!stalled && random_below(4) != 0);
		dut.eval();

		check(dut.s_rx_tready, "the MAC was held up");
		nic_dropped += dut.nic_dropped;
		core_dropped += dut.core_dropped;

		// What is taken at this edge.
		if (dut.s_tx_tvalid && dut.s_tx_tready) {
			nic.place += LANES, nic.offers = false;
			if (dut.s_tx_tlast)
				nic.queue.pop_front(), nic.place = 0;
		}
		if (dut.core_tx_valid && dut.core_tx_ready) {
			core.place += 8, core.offers = false;
			if (dut.core_tx_last)
				core.queue.pop_front(), core.place = 0;
		}
		if (dut.s_rx_tvalid) {
			mac.place += LANES;
			if (dut.s_rx_tlast)
				mac.queue.pop_front(), mac.place = 0;
		}
		if (dut.m_tx_tvalid && dut.m_tx_tready) {
			unsigned lanes = lanes_of(dut.m_tx_tkeep);
			for (unsigned n = 0; n < lanes; n++)
				to_mac.frame.bytes.push_back(get_byte(dut.m_tx_tdata, n));
			if (dut.m_tx_tlast) {
				uint8_t side = to_mac.frame.bytes[to_mac.frame.bytes.size() - 5];
				bool own = side == 2;
				std::deque<Frame> &sent = own ? core_sent : nic_sent;
				check(!sent.empty() && sent.front().bytes == to_mac.frame.bytes,
				      "a frame to the MAC");
				check(dut.m_tx_tuser == (own ? 0u : sent.front().user),
				      "tuser to the MAC");
				sent.pop_front();
				(own ? core_out : nic_out)++;
				pairs += !last_part && own && last_side == side;
				if (!last_part)
					(own ? core_bytes : nic_bytes) += to_mac.frame.bytes.size();
				last_side = side;
				to_mac.frame = Frame();
			} else {
				check(lanes == LANES, "a beat inside a frame is not full");
			}
		}
		if (dut.m_rx_tvalid && dut.m_rx_tready) {
			unsigned lanes = lanes_of(dut.m_rx_tkeep);
			for (unsigned n = 0; n < lanes; n++)
				to_nic.frame.bytes.push_back(get_byte(dut.m_rx_tdata, n));
			if (dut.m_rx_tlast) {
				to_nic.frame.user = dut.m_rx_tuser;
				to_nic.frames.push_back(to_nic.frame);
				to_nic.frame = Frame();
			}
		}
		if (dut.core_rx_valid) {
			check(dut.core_rx_bytes == 8 || dut.core_rx_last,
			      "a word inside a frame is not full");
			for (unsigned n = 0; n < dut.core_rx_bytes; n++)
				to_core.frame.bytes.push_back(get_byte(dut.core_rx_data, n));
			if (dut.core_rx_last) {
				to_core.frame.bad = dut.core_rx_error;
				to_core.frames.push_back(to_core.frame);
				to_core.frame = Frame();
			} else {
				check(!dut.core_rx_error, "an error before the end");
			}
		}
		dut.clk = 1, dut.eval();
		dut.clk = 0, dut.eval();
	}

	// Sending loses nothing. Receiving loses what was counted, and keeps the order.
	check(nic_sent.size() == nic.queue.size() && core_sent.size() == core.queue.size(),
	      "frames are left");
	auto compare = [](std::deque<Frame> due, const std::deque<Frame> &came, unsigned dropped,
			  bool users) {
		check(due.size() == came.size() + dropped, "the counts of a side");
		for (const Frame &frame : came) {
			while (!due.empty() && number_of(due.front()) != number_of(frame))
				due.pop_front();
			check(!due.empty() && due.front().bytes == frame.bytes,
			      "a frame from the MAC");
			check(users ? due.front().user == frame.user : due.front().bad == frame.bad,
			      "tuser from the MAC");
			due.pop_front();
		}
	};
	compare(nic_due, to_nic.frames, nic_dropped, true);
	compare(core_due, to_core.frames, core_dropped, false);
	printf("nic_out %u core_out %u nic_bytes %u core_bytes %u pairs %u nic_in %u core_in %u "
	       "nic_dropped %u core_dropped %u\n",
	       nic_out, core_out, nic_bytes, core_bytes, pairs, nic_in, core_in, nic_dropped,
	       core_dropped);
	return 0;
}
