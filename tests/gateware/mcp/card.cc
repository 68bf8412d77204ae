/* A card on a bench: single-DW reads and writes of BAR 0 as TLPs, and a host memory that the card
 * reads and writes. What it sends over its serial port it hears itself.
 *
 * Commands on standard input, one a line, numbers in hexadecimal:
 *   w ADDRESS VALUE   write one DW
 *   r ADDRESS         read one DW; its value is printed, or "timeout"
 *   s ADDRESS VALUE   set a DW of memory
 *   m ADDRESS         print a DW of memory, 0 before it was written
 *   n CYCLES          let time pass
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "Vdibber_card.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <vector>

static constexpr unsigned lanes = sizeof(Vdibber_card::pcie_rx_dat) / 4;

static uint32_t swap(uint32_t dw)
{
	return __builtin_bswap32(dw);
}

struct Bench {
	VerilatedContext context;
	Vdibber_card card{ &context };
	std::vector<uint32_t> tlp;		   /* being received */
	std::deque<std::vector<uint32_t>> replies; /* to the card's reads */
	std::map<uint64_t, uint32_t> memory;
	bool answered = false;
	uint32_t answer = 0;

	uint32_t *rx()
	{
		return reinterpret_cast<uint32_t *>(&card.pcie_rx_dat);
	}
	const uint32_t *tx()
	{
		return reinterpret_cast<const uint32_t *>(&card.pcie_tx_dat);
	}

	Bench()
	{
		card.pcie_id = 0x0100;
		card.pcie_max_payload = 256;
		card.pcie_max_request = 512;
		card.pcie_extended_tags = 1;
		card.pcie_msix_enable = 1;
		card.pcie_bus_master = 1;
		card.pcie_tx_ready = 1;
		card.serial_tx_ready = 1;
		card.serial_rx_valid = 1;
		card.serial_rx_signal = 1;
		card.sys_rst = 1;
		cycle();
		cycle();
		card.sys_rst = 0;
	}

	/* A whole TLP of the card: a completion, or a memory write or read. */
	void take()
	{
		unsigned type = tlp[0] >> 24, length = tlp[0] & 0x3ff;
		if (type == 0x4a) {
			answered = true;
			answer = swap(tlp[3]);
			return;
		}
		unsigned header = type & 0x20 ? 4 : 3;
		uint64_t address = header == 3 ? tlp[2] : (uint64_t)tlp[2] << 32 | tlp[3];
		unsigned first = tlp[1] & 0xf, last = length == 1 ? first : tlp[1] >> 4 & 0xf;
		if (type & 0x40) {
			for (unsigned n = 0; n < length; n++) {
				unsigned enables = n == 0 ? first : n == length - 1 ? last : 0xf;
				uint32_t mask = 0;
				for (unsigned k = 0; k < 4; k++)
					mask |= enables >> k & 1 ? 0xffu << 8 * k : 0;
				uint32_t &dw = memory[address + 4 * n];
				dw = (dw & ~mask) | (swap(tlp[header + n]) & mask);
			}
			return;
		}
		/* PCIe Base 3.0, 2.3.1.1: byte count and lower address leave out what is not
		 * enabled at the ends. */
		unsigned lead = __builtin_ctz(first), trail = __builtin_clz(last) - 28;
		std::vector<uint32_t> reply = { 0x4a000000u | length, 4 * length - lead - trail,
						(tlp[1] & 0xffffff00) | ((address & 0x7c) + lead) };
		for (unsigned n = 0; n < length; n++)
			reply.push_back(swap(memory[address + 4 * n]));
		replies.push_back(reply);
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
		uint32_t symbols = card.serial_tx_data;
		unsigned k = card.serial_tx_k;
		card.sys_clk = 1;
		card.eval();
		card.serial_rx_data = symbols;
		card.serial_rx_k = k;
	}

	void pass(unsigned long long cycles)
	{
		while (cycles--) {
			cycle();
			if (!replies.empty()) {
				send(replies.front());
				replies.pop_front();
			}
		}
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
				card.pcie_rx_be |= 0xf << 4 * k;
			}
			cycle();
		}
		card.pcie_rx_valid = 0;
	}

	void write(uint32_t address, uint32_t value)
	{
		send({ 0x40000001, 0x0000000f, address, swap(value) });
	}

	void read(uint32_t address)
	{
		answered = false;
		send({ 0x00000001, 0x0000000f, address });
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
		else if (sscanf(line, "s %llx %llx", &a, &b) == 2)
			bench->memory[a] = b;
		else if (sscanf(line, "m %llx", &a) == 1)
			printf("%08x\n", bench->memory[a]);
		else if (sscanf(line, "n %llx", &a) == 1)
			bench->pass(a);
		else
			return 1;
	}
	return 0;
}
