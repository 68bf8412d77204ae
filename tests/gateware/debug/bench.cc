/* The processor on a bench, with a debugger at its JTAG pins.
 *
 * Commands on standard input, one a line, numbers in hexadecimal; each is answered by a line:
 *   i VALUE         shift the instruction register (5 bits)
 *   d BITS VALUE    shift the data register; what came out
 *   h LEVEL         hold the processor in reset, or not
 *   w ADDRESS VALUE write a word of the SRAM
 *   n CYCLES        let time pass; 2 when a reset is asked for, and 1 when the processor has been
 * halted
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "Vbench.h"
#include "verilated.h"

#include <cinttypes>
#include <cstdio>

static constexpr unsigned level = 3; /* cycles for which TCK stays high, and low */

struct Bench {
	VerilatedContext context;
	Vbench top{ &context };

	void cycle()
	{
		top.sys_clk = 0;
		top.eval();
		top.sys_clk = 1;
		top.eval();
	}

	void wait(uint64_t cycles)
	{
		while (cycles--)
			cycle();
	}

	/* One period of TCK; TDO as it is before the rising edge. */
	bool tick(bool tms, bool tdi)
	{
		top.tck = 0;
		top.tms = tms;
		top.tdi = tdi;
		wait(level + 2);
		bool out = top.tdo;
		top.tck = 1;
		wait(level);
		return out;
	}

	/* From Run-Test/Idle and back to it. */
	uint64_t shift(bool instruction, unsigned bits, uint64_t value)
	{
		uint64_t out = 0;
		tick(1, 0);
		if (instruction)
			tick(1, 0);
		tick(0, 0);
		tick(0, 0);
		for (unsigned n = 0; n < bits; n++)
			out |= uint64_t(tick(n == bits - 1, value >> n & 1)) << n;
		tick(1, 0);
		tick(0, 0);
		tick(0, 0);
		return out;
	}
};

double sc_time_stamp()
{
	return 0;
}

int main()
{
	Bench bench;
	bench.top.hold = 1;
	bench.top.sys_rst = 1;
	bench.wait(4);
	bench.top.sys_rst = 0;
	for (int n = 0; n < 5; n++)
		bench.tick(1, 0);
	bench.tick(0, 0);

	char line[128], what;
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t a = 0, b = 0, answer = 0;
		if (sscanf(line, " %c %" SCNx64 " %" SCNx64, &what, &a, &b) < 1)
			continue;
		switch (what) {
		case 'i':
			answer = bench.shift(true, 5, a);
			break;
		case 'd':
			answer = bench.shift(false, unsigned(a), b);
			break;
		case 'h':
			bench.top.hold = a;
			bench.wait(8);
			break;
		case 'w':
			bench.top.load = 1;
			bench.top.load_adr = a >> 2;
			bench.top.load_data = uint32_t(b);
			bench.cycle();
			bench.top.load = 0;
			break;
		case 'n':
			bench.wait(a);
			answer = uint64_t(bench.top.ndmreset << 1 | bench.top.halted);
			break;
		}
		printf("%" PRIx64 "\n", answer);
		fflush(stdout);
	}
	return 0;
}
