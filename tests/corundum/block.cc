// SPDX-License-Identifier: BSD-2-Clause
//
// Two of mqnic_app_block on a cable, each with a NIC beside it. PCIe of 256 bits, frames of 128.
//
//   block SEED | two
//
// Each card is asked by AXI-lite for its identity, and gets a nonce. Then the two must find each
// other while the NICs send frames through the same MACs. A DMA engine that takes nothing stands
// behind each. It prints one line of facts, or what is wrong, and then ends with 1.
//
// The addresses AT_MAGIC, AT_LINK_STATUS, AT_LINK_NONCE and AT_LINK_PEER come from the interface's
// description.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "Vmqnic_app_block.h"
#include "engines.h"

static const unsigned LANES = 16;

static void fail(const char *why)
{
	printf("wrong: %s\n", why);
	exit(1);
}

struct Beat {
	uint8_t data[LANES];
	uint16_t keep;
	bool last;
};

struct Card {
	std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
	std::unique_ptr<Vmqnic_app_block> dut;
	std::deque<Beat> wire;			  // what the other card has sent
	std::deque<std::vector<uint8_t>> to_send; // of the NIC
	std::vector<std::vector<uint8_t>> came;	  // to the NIC
	std::vector<uint8_t> frame;
	size_t place = 0;
	unsigned dibber_frames = 0;
	bool inside = false;

	Card() : dut(std::make_unique<Vmqnic_app_block>(context.get()))
	{
	}
};

static Card cards[2];
static std::mt19937 random_source;

static void set_beat(Card &card, const Beat &beat)
{
	memcpy(&card.dut->s_axis_sync_rx_tdata, beat.data, LANES);
	card.dut->s_axis_sync_rx_tkeep = beat.keep;
	card.dut->s_axis_sync_rx_tlast = beat.last;
}

static std::function<void()> behind;	 // what stands behind the first card, before each edge
static DMA<Vmqnic_app_block> *engine[2]; // what stands behind each of two cards
static bool traffic;			 // the NICs send without end
static std::deque<std::vector<uint8_t>> due[2]; // frames that are on their way to a NIC
static unsigned nic_frames[2];
static bool alone; // only the first card lives

static void edges()
{
	for (int edge = 1; edge >= 0; edge--)
		for (Card &card : cards)
			if (!alone || &card == cards)
				card.dut->clk = edge, card.dut->eval();
}

// Frames of the card's own come back to it.
static void mirrored(Card &card)
{
	Vmqnic_app_block &dut = *card.dut;
	if (dut.s_axis_sync_rx_tvalid)
		card.wire.pop_front();
	if (dut.m_axis_sync_tx_tvalid && dut.m_axis_sync_tx_tready) {
		const uint8_t *data = reinterpret_cast<const uint8_t *>(&dut.m_axis_sync_tx_tdata);
		for (unsigned lane = 0; lane < LANES; lane++)
			if (dut.m_axis_sync_tx_tkeep >> lane & 1)
				card.frame.push_back(data[lane]);
		if (dut.m_axis_sync_tx_tlast) {
			mirror(card.frame);
			for (size_t place = 0; place < card.frame.size(); place += LANES) {
				Beat beat = {};
				size_t lanes = std::min<size_t>(LANES, card.frame.size() - place);
				memcpy(beat.data, &card.frame[place], lanes);
				beat.keep = (1 << lanes) - 1;
				beat.last = place + lanes == card.frame.size();
				card.wire.push_back(beat);
			}
			card.frame.clear();
		}
	}
}

static void cycle()
{
	if (alone) {
		Vmqnic_app_block &dut = *cards[0].dut;
		dut.s_axis_sync_rx_tvalid = !cards[0].wire.empty();
		if (!cards[0].wire.empty())
			set_beat(cards[0], cards[0].wire.front());
		dut.m_axis_sync_tx_tready = 1;
		behind();
		edges();
		return;
	}
	for (int n = 0; n < 2; n++) {
		Card &card = cards[n];
		Vmqnic_app_block &dut = *card.dut;
		if (traffic && card.to_send.empty()) {
			std::vector<uint8_t> bytes(60 + random_source() % 1400);
			for (uint8_t &byte : bytes)
				byte = random_source();
			bytes[12] = 0x08, bytes[13] = 0x00;
			card.to_send.push_back(bytes);
			due[1 - n].push_back(bytes);
		}
		if (engine[n])
			engine[n]->drive(dut);
		dut.s_axis_sync_tx_tvalid = !card.to_send.empty() && random_source() % 4;
		if (!card.to_send.empty()) {
			const std::vector<uint8_t> &bytes = card.to_send.front();
			size_t lanes = std::min<size_t>(LANES, bytes.size() - card.place);
			memcpy(&dut.s_axis_sync_tx_tdata, &bytes[card.place], lanes);
			dut.s_axis_sync_tx_tkeep = (1 << lanes) - 1;
			dut.s_axis_sync_tx_tlast = card.place + lanes == bytes.size();
		}
		dut.s_axis_sync_rx_tvalid = !card.wire.empty();
		if (!card.wire.empty())
			set_beat(card, card.wire.front());
		dut.m_axis_sync_tx_tready = random_source() % 8 != 0;
		dut.m_axis_sync_rx_tready = random_source() % 4 != 0;
		dut.eval();
		if (engine[n])
			engine[n]->take(dut);
	}
	for (int n = 0; n < 2; n++) {
		Card &card = cards[n];
		Vmqnic_app_block &dut = *card.dut;
		if (dut.s_axis_sync_rx_tvalid)
			card.wire.pop_front();
		if (dut.s_axis_sync_tx_tvalid && dut.s_axis_sync_tx_tready) {
			card.place += LANES;
			if (dut.s_axis_sync_tx_tlast)
				card.to_send.pop_front(), card.place = 0;
		}
		if (dut.m_axis_sync_rx_tvalid && dut.m_axis_sync_rx_tready) {
			const uint8_t *data =
				reinterpret_cast<const uint8_t *>(&dut.m_axis_sync_rx_tdata);
			for (unsigned lane = 0; lane < LANES; lane++)
				if (dut.m_axis_sync_rx_tkeep >> lane & 1)
					card.frame.push_back(data[lane]);
			if (dut.m_axis_sync_rx_tlast) {
				if (!traffic) {
					card.came.push_back(card.frame);
				} else {
					if (due[n].empty() || due[n].front() != card.frame)
						fail("the NIC's frames");
					due[n].pop_front();
					nic_frames[n]++;
				}
				card.frame.clear();
			}
		}
		if (dut.m_axis_sync_tx_tvalid && dut.m_axis_sync_tx_tready) {
			Beat beat;
			memcpy(beat.data, &dut.m_axis_sync_tx_tdata, LANES);
			beat.keep = dut.m_axis_sync_tx_tkeep;
			beat.last = dut.m_axis_sync_tx_tlast;
			cards[1 - n].wire.push_back(beat);
			if (!card.inside && beat.data[12] == 0x88 && beat.data[13] == 0xb5)
				card.dibber_frames++;
			card.inside = !beat.last;
		}
	}
	edges();
}

static void store(Card &card, uint32_t address, uint32_t word)
{
	Vmqnic_app_block &dut = *card.dut;
	dut.s_axil_app_ctrl_awaddr = address, dut.s_axil_app_ctrl_wdata = word;
	dut.s_axil_app_ctrl_wstrb = 15;
	dut.s_axil_app_ctrl_awvalid = dut.s_axil_app_ctrl_wvalid = 1;
	for (int wait = 0;; wait++) {
		dut.eval();
		bool taken = dut.s_axil_app_ctrl_awready && dut.s_axil_app_ctrl_wready;
		cycle();
		if (taken)
			break;
		if (wait > 1000)
			fail("a store is not taken");
	}
	dut.s_axil_app_ctrl_awvalid = dut.s_axil_app_ctrl_wvalid = 0;
	dut.s_axil_app_ctrl_bready = 1;
	for (int wait = 0; !dut.s_axil_app_ctrl_bvalid; wait++) {
		cycle();
		if (wait > 1000)
			fail("a store is not answered");
	}
	cycle();
	dut.s_axil_app_ctrl_bready = 0;
}

static uint32_t load(Card &card, uint32_t address)
{
	Vmqnic_app_block &dut = *card.dut;
	dut.s_axil_app_ctrl_araddr = address, dut.s_axil_app_ctrl_arvalid = 1;
	for (int wait = 0;; wait++) {
		dut.eval();
		bool taken = dut.s_axil_app_ctrl_arready;
		cycle();
		if (taken)
			break;
		if (wait > 1000)
			fail("a load is not taken");
	}
	dut.s_axil_app_ctrl_arvalid = 0;
	dut.s_axil_app_ctrl_rready = 1;
	for (int wait = 0; !dut.s_axil_app_ctrl_rvalid; wait++) {
		cycle();
		if (wait > 1000)
			fail("a load is not answered");
	}
	uint32_t word = dut.s_axil_app_ctrl_rdata;
	cycle();
	dut.s_axil_app_ctrl_rready = 0;
	return word;
}

static void pair(unsigned seed)
{
	random_source.seed(seed);
	for (Card &card : cards)
		card.dut->rst = 1;
	for (int n = 0; n < 8; n++)
		cycle();
	for (Card &card : cards) {
		card.dut->rst = 0;
		card.wire.clear();
	}
	uint32_t magic = load(cards[0], AT_MAGIC);
	if (magic != load(cards[1], AT_MAGIC))
		fail("the two cards have different identities");
	store(cards[0], AT_LINK_NONCE, 0x1111);
	store(cards[1], AT_LINK_NONCE, 0x2222);

	// Frames of the NICs, of other types; in the first bytes their number.
	std::vector<std::vector<uint8_t>> sent[2];
	for (int n = 0; n < 2; n++)
		for (unsigned number = 0; number < 40; number++) {
			std::vector<uint8_t> bytes(60 + random_source() % 1400);
			for (uint8_t &byte : bytes)
				byte = random_source();
			memcpy(&bytes[0], &number, 4);
			bytes[12] = 0x08, bytes[13] = 0x00;
			sent[n].push_back(bytes);
			cards[n].to_send.push_back(bytes);
		}
	uint32_t status[2] = {};
	for (int round = 0; round < 200; round++) {
		for (int n = 0; n < 2; n++)
			status[n] = load(cards[n], AT_LINK_STATUS);
		for (int n = 0; n < 200; n++)
			cycle();
		if (cards[0].came.size() == 40 && cards[1].came.size() == 40 && round > 60)
			break;
	}
	for (int n = 0; n < 2; n++)
		if (cards[n].came != sent[1 - n])
			fail("the NIC's frames");
	printf("magic %u state %u %u peer %u %u frames %u %u\n", magic, status[0] & 0xf,
	       status[1] & 0xf, load(cards[0], AT_LINK_PEER), load(cards[1], AT_LINK_PEER),
	       cards[0].dibber_frames, cards[1].dibber_frames);
}

// Until the link of each card is up.
static void wait_for_link(std::initializer_list<Card *> waiting)
{
	for (Card *card : waiting)
		for (int n = 0; (load(*card, AT_LINK_STATUS) & 0xf) != 2; n++)
			if (n > 2000)
				fail("the link does not come up");
}

// Orders on standard input, as tests/gateware/mcp/card.cc has them; `c N` says for which card.
static void orders()
{
	char line[80];
	unsigned long long a, b;
	int side = 0;

	while (fgets(line, sizeof(line), stdin)) {
		auto &memory = engine[side]->memory;
		if (sscanf(line, "c %llx", &a) == 1)
			side = a;
		else if (sscanf(line, "w %llx %llx", &a, &b) == 2)
			store(cards[side], a, b);
		else if (sscanf(line, "r %llx", &a) == 1)
			printf("%08x\n", load(cards[side], a));
		else if (sscanf(line, "s %llx %llx", &a, &b) == 2)
			for (unsigned n = 0; n < 4; n++)
				memory[a + n] = b >> 8 * n;
		else if (sscanf(line, "m %llx", &a) == 1)
			printf("%02x%02x%02x%02x\n", memory[a + 3], memory[a + 2], memory[a + 1],
			       memory[a]);
		else if (sscanf(line, "n %llx", &a) == 1)
			while (a--)
				cycle();
		else
			fail("an order that is none");
	}
}

static void reset()
{
	for (Card &card : cards)
		card.dut->rst = 1;
	for (int n = 0; n < 8; n++)
		cycle();
	for (Card &card : cards) {
		card.dut->rst = 0;
		card.wire.clear();
	}
}

// One card; what it sends comes back to it from a mirror.
static void one_card()
{
	static DMA<Vmqnic_app_block> dma;

	behind = [] {
		dma.drive(*cards[0].dut);
		cards[0].dut->eval();
		dma.take(*cards[0].dut);
		mirrored(cards[0]);
	};
	engine[0] = &dma;
	alone = true;
	reset();
	store(cards[0], AT_LINK_NONCE, 0x1234);
	wait_for_link({ &cards[0] });
	orders();
}

// Two cards, and their NICs send all the time. At the end the frames of the NICs are counted.
static void two_cards()
{
	static DMA<Vmqnic_app_block> dma[2];

	reset();
	for (int n = 0; n < 2; n++) {
		engine[n] = &dma[n];
		store(cards[n], AT_LINK_NONCE, 0x1111 * (n + 1));
	}
	traffic = true;
	wait_for_link({ &cards[0], &cards[1] });
	orders();
	printf("%08x\n%08x\n", nic_frames[0], nic_frames[1]);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "two"))
		two_cards();
	else if (argc > 1)
		pair(atoi(argv[1]));
	else
		one_card();
	fflush(stdout);
	// The models are static: their destructors would come after those of Verilator.
	std::_Exit(0);
}
