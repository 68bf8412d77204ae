/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A card on its host bridge: bytes in and out of its UART, without the time that a line takes. What it sends
 * over its serial port it hears itself.
 *
 * Each request on standard input: three little-endian words (bytes to send, bytes to answer, cycles to let
 * pass), then the bytes. The answer is the bytes on standard output. Ends when the input does, or with 1 when
 * the card answers nothing for a million cycles.
 */

#include "Vbridged_card.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

static constexpr unsigned patience_cycles = 1000000;

struct Bench {
	VerilatedContext context;
	Vbridged_card card{&context};
	std::vector<uint8_t> heard;

	Bench()
	{
		card.serial_rx_valid = 1;
		card.uart_tx_ready = 1;
		card.sys_rst = 1;
		cycle();
		cycle();
		card.sys_rst = 0;
	}

	/* Whether the card took the byte that was offered. */
	bool cycle()
	{
		card.serial_tx_ready = 1;
		card.sys_clk = 0;
		card.eval();
		bool taken = card.uart_rx_valid && card.uart_rx_ready;
		if (card.uart_tx_valid)
			heard.push_back(card.uart_tx_data);
		uint32_t symbols = card.serial_tx_data;
		unsigned k = card.serial_tx_k;
		card.sys_clk = 1;
		card.eval();
		card.serial_rx_data = symbols;
		card.serial_rx_k = k;
		return taken;
	}

	bool send(uint8_t byte)
	{
		card.uart_rx_valid = 1;
		card.uart_rx_data = byte;
		bool taken = false;
		for (unsigned n = 0; n < patience_cycles && !taken; n++)
			taken = cycle();
		card.uart_rx_valid = 0;
		return taken;
	}
};

int main()
{
	auto bench = std::make_unique<Bench>();
	uint32_t request[3];

	while (fread(request, sizeof(request), 1, stdin) == 1) {
		std::vector<uint8_t> bytes(request[0]);
		if (fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size())
			return 1;
		for (uint8_t byte : bytes)
			if (!bench->send(byte))
				return 1;
		for (unsigned n = 0; n < request[2]; n++)
			bench->cycle();
		for (unsigned n = 0; bench->heard.size() < request[1]; n++) {
			if (n == patience_cycles)
				return 1;
			bench->cycle();
		}
		fwrite(bench->heard.data(), 1, request[1], stdout);
		fflush(stdout);
		bench->heard.erase(bench->heard.begin(), bench->heard.begin() + request[1]);
	}
	return 0;
}
