/* Cards on their host bridges, each behind a pseudo-terminal in place of a UART, without the time
 * that a line takes.
 *
 *   Vbridged_card CARDS
 *
 * One card hears on its serial port what it sends; two hear each other. The names of the terminals
 * are printed, a line each. Ends when standard input does. Simulated time goes on while anybody
 * speaks, and a little longer.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "Vbridged_card.h"
#include "../../hw/sim/flash/flash.cc"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

static constexpr unsigned look_cycles = 64;   /* between two looks at the terminals */
static constexpr unsigned rest_cycles = 4096; /* that go on behind the last byte */

struct Card {
	VerilatedContext context;
	Vbridged_card card{ &context };
	int terminal, slave;
	std::deque<uint8_t> to_card;
	std::vector<uint8_t> from_card;
	dibber::Flash flash;
	uint32_t symbols = 0;
	unsigned k = 0;

	Card()
	{
		terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
		if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
			exit(1);
		/* Kept open, so that the terminal is there while nobody else has it. */
		slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
		termios raw;
		tcgetattr(slave, &raw);
		cfmakeraw(&raw);
		tcsetattr(slave, TCSANOW, &raw);
		puts(ptsname(terminal));
		card.uart_tx_ready = 1;
		card.serial_tx_ready = 1;
		card.serial_rx_valid = 1;
		card.sys_rst = 1;
		fall();
		rise(*this);
		fall();
		rise(*this);
		card.sys_rst = 0;
	}

	void fall()
	{
		card.uart_rx_valid = !to_card.empty();
		card.uart_rx_data = to_card.empty() ? 0 : to_card.front();
		card.sys_clk = 0;
		card.eval();
		if (card.uart_tx_valid)
			from_card.push_back(card.uart_tx_data);
		if (card.uart_rx_valid && card.uart_rx_ready)
			to_card.pop_front();
		symbols = card.serial_tx_data;
		k = card.serial_tx_k;
	}

	/* With what the card at the other end sent in this cycle. */
	void rise(const Card &other)
	{
		uint32_t data = other.symbols;
		unsigned control = other.k;
		bool miso = flash.step(card.flash_cs_n, card.flash_clk, card.flash_mosi);
		card.sys_clk = 1;
		card.eval();
		card.flash_miso = miso;
		card.serial_rx_data = data;
		card.serial_rx_k = control;
	}

	/* Whether there was anything to pass on. */
	bool exchange()
	{
		uint8_t bytes[4096];
		bool busy = !to_card.empty();
		ssize_t n = to_card.empty() ? read(terminal, bytes, sizeof bytes) : 0;
		if (n > 0) {
			to_card.insert(to_card.end(), bytes, bytes + n);
			busy = true;
		}
		if (!from_card.empty()) {
			n = write(terminal, from_card.data(), from_card.size());
			if (n > 0)
				from_card.erase(from_card.begin(), from_card.begin() + n);
			busy = true;
		}
		return busy;
	}
};

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<Card>> cards;
	std::vector<pollfd> waits{ { STDIN_FILENO, POLLIN, 0 } };

	for (int n = 0; n < (argc > 1 ? atoi(argv[1]) : 1); n++) {
		cards.push_back(std::make_unique<Card>());
		waits.push_back({ cards.back()->terminal, POLLIN, 0 });
	}
	fflush(stdout);
	for (unsigned rest = 0;;) {
		bool busy = false;
		for (auto &card : cards)
			busy |= card->exchange();
		rest = busy ? rest_cycles : rest - (rest ? look_cycles : 0);
		poll(waits.data(), waits.size(), rest ? 0 : -1);
		if (waits[0].revents)
			return 0;
		if (!rest && !(waits[1].revents | waits.back().revents))
			continue;
		for (unsigned n = 0; n < look_cycles; n++) {
			for (auto &card : cards)
				card->fall();
			for (size_t c = 0; c < cards.size(); c++)
				cards[c]->rise(*cards[cards.size() - 1 - c]);
		}
	}
}
