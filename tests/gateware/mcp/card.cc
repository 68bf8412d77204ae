/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A card on a bench: single-DW reads and writes of BAR 0 as TLPs, and what the card writes to memory.
 *
 * Commands on standard input, one a line, numbers in hexadecimal:
 *   w ADDRESS VALUE   write one DW
 *   r ADDRESS         read one DW; its value is printed, or "timeout"
 *   m ADDRESS         print the DW that the card wrote to that place in memory, 0 before it wrote
 *   n CYCLES          let time pass
 */

#include "Vdibber_card.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

static constexpr unsigned lanes = sizeof(Vdibber_card::pcie_rx_dat)/4;

static uint32_t swap(uint32_t dw) { return __builtin_bswap32(dw); }

struct Bench {
	VerilatedContext context;
	Vdibber_card card{&context};
	std::vector<uint32_t> tlp; /* being received */
	std::map<uint64_t, uint32_t> memory;
	bool answered = false;
	uint32_t answer = 0;

	uint32_t *rx() { return reinterpret_cast<uint32_t *>(&card.pcie_rx_dat); }
	const uint32_t *tx() { return reinterpret_cast<const uint32_t *>(&card.pcie_tx_dat); }

	Bench()
	{
		card.pcie_id = 0x0100;
		card.pcie_max_payload = 256;
		card.pcie_max_request = 512;
		card.pcie_extended_tags = 1;
		card.pcie_msix_enable = 1;
		card.pcie_tx_ready = 1;
		card.serial_tx_ready = 1;
		card.sys_rst = 1;
		cycle();
		cycle();
		card.sys_rst = 0;
	}

	/* A whole TLP of the card: a completion, or a memory write of up to 32 bytes. */
	void take()
	{
		unsigned type = tlp[0] >> 24, length = tlp[0] & 0x3ff;
		if (type == 0x4a) {
			answered = true;
			answer = swap(tlp[3]);
		} else if (type == 0x40 || type == 0x60) {
			unsigned header = type == 0x40 ? 3 : 4;
			uint64_t address = header == 3 ? tlp[2] : (uint64_t)tlp[2] << 32 | tlp[3];
			for (unsigned n = 0; n < length; n++)
				memory[address + 4*n] = swap(tlp[header + n]);
		}
	}

	void cycle()
	{
		card.sys_clk = 0;
		card.eval();
		if (card.pcie_tx_valid) {
			tlp.insert(tlp.end(), tx(), tx() + lanes);
			if (card.pcie_tx_last) {
				take();
				tlp.clear();
			}
		}
		card.sys_clk = 1;
		card.eval();
	}

	void send(const std::vector<uint32_t> &dws)
	{
		for (unsigned n = 0; n < dws.size(); n += lanes) {
			card.pcie_rx_valid = 1;
			card.pcie_rx_first = n == 0;
			card.pcie_rx_last = n + lanes >= dws.size();
			card.pcie_rx_be = 0;
			for (unsigned k = 0; k < lanes && n + k < dws.size(); k++) {
				rx()[k] = dws[n + k];
				card.pcie_rx_be |= 0xf << 4*k;
			}
			cycle();
		}
		card.pcie_rx_valid = 0;
	}

	void write(uint32_t address, uint32_t value) { send({0x40000001, 0x0000000f, address, swap(value)}); }

	void read(uint32_t address)
	{
		answered = false;
		send({0x00000001, 0x0000000f, address});
		for (unsigned n = 0; n < 1000 && !answered; n++)
			cycle();
		if (answered)
			printf("%08x\n", answer);
		else
			printf("timeout\n");
	}
};

int main()
{
	auto bench = std::make_unique<Bench>();
	char line[80];
	unsigned long long a, b;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "w %llx %llx", &a, &b) == 2)
			bench->write(a, b);
		else if (sscanf(line, "r %llx", &a) == 1)
			bench->read(a);
		else if (sscanf(line, "m %llx", &a) == 1)
			printf("%08x\n", bench->memory[a]);
		else if (sscanf(line, "n %llx", &a) == 1)
			while (a--)
				bench->cycle();
		else
			return 1;
	}
	return 0;
}
