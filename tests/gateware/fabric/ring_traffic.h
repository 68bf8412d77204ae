/* What the benches of ring nodes have in common: options, traffic, and the pins of a channel.
 *
 * `Top` is the Verilated node; it is defined before this file is included.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

static constexpr unsigned channels = 4;
/* Statuses of an echo: gateware/dibber/fabric/ring/words.py. */
enum { ACCEPTED, BUSY_A, BUSY_B, ORDER, DAMAGED, GRANT, LOST };
static constexpr uint32_t idle_word = 0xb5ff00bc;

struct Random {
	uint64_t state;
	uint64_t next() /* splitmix64 */
	{
		uint64_t z = state += 0x9e3779b97f4a7c15;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		return z ^ z >> 31;
	}
	unsigned below(unsigned n)
	{
		return next() % n;
	}
	bool chance(double p)
	{
		return p >= 1 || (p > 0 && (next() >> 11) * 0x1p-53 < p);
	}
};

static std::map<std::string, std::string> options;
static double number(const char *name)
{
	auto found = options.find(name);
	if (found == options.end()) {
		fprintf(stderr, "ring_bench: %s is missing\n", name);
		exit(2);
	}
	return atof(found->second.c_str());
}

static uint8_t crc8(uint32_t bytes, unsigned count)
{
	uint8_t crc = 0;
	for (unsigned n = 0; n < count; n++) {
		crc ^= bytes >> 8 * n;
		for (int bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x80 ? 7 : 0);
	}
	return crc;
}

/* The word of a packet: all nodes can compute it. */
static uint32_t payload(unsigned source, unsigned target, unsigned channel, uint32_t sequence,
			unsigned n)
{
	Random random{ (uint64_t)source << 56 ^ (uint64_t)target << 48 ^ (uint64_t)channel << 44 ^
		       (uint64_t)n << 32 ^ sequence };
	return random.next();
}

struct Word {
	bool valid;
	uint32_t data;
	uint8_t k, error;
};

struct Offer { /* a packet at a sink */
	unsigned target, words, at;
	uint32_t sequence;
	bool active;
	uint64_t since;
};

struct Arrival {
	bool inside;
	unsigned source, words, expected; /* words so far, and by its first word */
	uint32_t sequence;
	bool right;
};

template <typename F> static void with_sink(Top &n, unsigned c, F f)
{
#define SINK(C)                                                                      \
	f(n.sink##C##_valid, n.sink##C##_ready, n.sink##C##_data, n.sink##C##_first, \
	  n.sink##C##_last, n.sink##C##_bad, n.sink##C##_prefix)
	switch (c) {
	case 0:
		SINK(0);
		break;
	case 1:
		SINK(1);
		break;
	case 2:
		SINK(2);
		break;
	default:
		SINK(3);
	}
}

template <typename F> static void with_source(Top &n, unsigned c, F f)
{
#define SOURCE(C)                                                                            \
	f(n.source##C##_valid, n.source##C##_ready, n.source##C##_data, n.source##C##_first, \
	  n.source##C##_last, n.source##C##_bad)
	switch (c) {
	case 0:
		SOURCE(0);
		break;
	case 1:
		SOURCE(1);
		break;
	case 2:
		SOURCE(2);
		break;
	default:
		SOURCE(3);
	}
}

static uint64_t percentile(std::vector<uint32_t> &values, double share)
{
	if (values.empty())
		return 0;
	size_t place = std::min(values.size() - 1, (size_t)(share * values.size()));
	std::nth_element(values.begin(), values.begin() + place, values.end());
	return values[place];
}

static void print_latency(const char *name, std::vector<uint32_t> &values)
{
	double sum = 0;
	uint32_t most = 0, least = values.empty() ? 0 : ~0u;
	for (uint32_t value : values) {
		sum += value;
		most = std::max(most, value);
		least = std::min(least, value);
	}
	printf("\"%s\": {\"count\": %zu, \"mean\": %.2f, \"least\": %u, \"median\": %" PRIu64
	       ", \"p99\": %" PRIu64 ", \"most\": %u},\n",
	       name, values.size(), values.empty() ? 0 : sum / values.size(), least,
	       percentile(values, 0.5), percentile(values, 0.99), most);
}
