/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Corundum's DMA engine before one card, and a mirror in place of its cable: what stands behind
 * mqnic_app_block when a test talks to the engines of the core.
 *
 * Write descriptors are executed in their order, read descriptors in any. A descriptor takes two
 * cycles at least, and statuses come late and in any order.
 */

#ifndef ENGINES_H
#define ENGINES_H

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <vector>

static const unsigned SEGMENTS = 2, SEGMENT = 32; /* bytes of a segment's word */

struct Word {
	unsigned address, byte, place, count;
	size_t order; /* number of its descriptor */
};

struct Order {
	uint64_t address;
	unsigned ram, length, tag;
	std::vector<uint8_t> data;
	unsigned left = 0; /* words that are still to come */
};

struct Status {
	uint64_t due;
	unsigned tag;
};

/* Words of the segmented RAM that a descriptor touches. */
template <typename Each> static void words_of(const Order &order, Each each)
{
	for (unsigned place = 0; place < order.length;) {
		unsigned byte = order.ram + place;
		unsigned count = std::min(SEGMENT - byte % SEGMENT, order.length - place);
		each(byte / SEGMENT % SEGMENTS,
		     Word{ byte / SEGMENT / SEGMENTS, byte % SEGMENT, place, count, 0 });
		place += count;
	}
}

template <typename Card> struct DMA {
	std::map<uint64_t, uint8_t> memory;
	std::map<size_t, Order> writes, reads;
	size_t writes_begun = 0, writes_done = 0, reads_begun = 0;
	std::deque<Word> fetches[SEGMENTS], awaited[SEGMENTS], stores[SEGMENTS], stored[SEGMENTS];
	std::vector<Status> write_due, read_due;
	std::vector<std::pair<uint64_t, size_t>> later; /* reads that wait for their data */
	uint64_t now = 0;
	std::mt19937 random{ 7 };

	template <typename Port>
	static void set_part(Port &port, unsigned place, const void *from, size_t size)
	{
		memcpy(reinterpret_cast<uint8_t *>(&port) + place, from, size);
	}

	template <typename Port>
	static void set_address(Port &port, unsigned segment, unsigned address)
	{
		unsigned bits = 10; /* RAM_SEG_ADDR_WIDTH: 64 KiB in words of 2 x 32 bytes */
		uint64_t mask = ((1ull << bits) - 1) << bits * segment;
		port = (port & ~mask) | (uint64_t(address & ((1 << bits) - 1)) << bits * segment);
	}

	static bool take_status(std::vector<Status> &due, uint64_t now, std::mt19937 &random,
				unsigned &tag)
	{
		std::vector<size_t> ready;
		for (size_t n = 0; n < due.size(); n++)
			if (due[n].due <= now)
				ready.push_back(n);
		if (ready.empty())
			return false;
		size_t n = ready[random() % ready.size()];
		tag = due[n].tag;
		due.erase(due.begin() + n);
		return true;
	}

	/* Inputs of this cycle. */
	void drive(Card &card)
	{
		now++;
		card.m_axis_data_dma_write_desc_ready = !card.m_axis_data_dma_write_desc_ready;
		card.m_axis_data_dma_read_desc_ready = !card.m_axis_data_dma_read_desc_ready;
		unsigned tag = 0;
		card.s_axis_data_dma_write_desc_status_valid =
			take_status(write_due, now, random, tag);
		card.s_axis_data_dma_write_desc_status_tag = tag;
		card.s_axis_data_dma_read_desc_status_valid =
			take_status(read_due, now, random, tag);
		card.s_axis_data_dma_read_desc_status_tag = tag;
		card.data_dma_ram_rd_cmd_valid = card.data_dma_ram_wr_cmd_valid = 0;
		card.data_dma_ram_rd_resp_ready = random() & 3;
		for (size_t n = 0; n < later.size();) {
			if (later[n].first <= now) {
				Order &order = reads[later[n].second];
				for (unsigned k = 0; k < order.length; k++)
					order.data.push_back(memory[order.address + k]);
				words_of(order, [&](unsigned segment, Word word) {
					word.order = later[n].second;
					stores[segment].push_back(word);
					order.left++;
				});
				later.erase(later.begin() + n);
			} else {
				n++;
			}
		}
		for (unsigned segment = 0; segment < SEGMENTS; segment++) {
			if (!fetches[segment].empty()) {
				card.data_dma_ram_rd_cmd_valid |= 1 << segment;
				set_address(card.data_dma_ram_rd_cmd_addr, segment,
					    fetches[segment].front().address);
			}
			if (!stores[segment].empty()) {
				const Word &word = stores[segment].front();
				uint8_t data[SEGMENT] = {};
				memcpy(data + word.byte, &reads[word.order].data[word.place],
				       word.count);
				uint32_t enables =
					uint32_t(((1ull << word.count) - 1) << word.byte);
				card.data_dma_ram_wr_cmd_valid |= 1 << segment;
				set_address(card.data_dma_ram_wr_cmd_addr, segment, word.address);
				set_part(card.data_dma_ram_wr_cmd_data, SEGMENT * segment, data,
					 SEGMENT);
				set_part(card.data_dma_ram_wr_cmd_be, 4 * segment, &enables, 4);
			}
		}
	}

	/* What happens at the edge; the inputs stand, and the outputs are those that they give. */
	void take(Card &card)
	{
		if (card.m_axis_data_dma_write_desc_valid &&
		    card.m_axis_data_dma_write_desc_ready) {
			Order order = { card.m_axis_data_dma_write_desc_dma_addr,
					card.m_axis_data_dma_write_desc_ram_addr,
					card.m_axis_data_dma_write_desc_len,
					card.m_axis_data_dma_write_desc_tag };
			order.data.resize(order.length);
			words_of(order, [&](unsigned segment, Word word) {
				word.order = writes_begun;
				fetches[segment].push_back(word);
				order.left++;
			});
			writes[writes_begun++] = order;
		}
		if (card.m_axis_data_dma_read_desc_valid && card.m_axis_data_dma_read_desc_ready) {
			reads[reads_begun] = { card.m_axis_data_dma_read_desc_dma_addr,
					       card.m_axis_data_dma_read_desc_ram_addr,
					       card.m_axis_data_dma_read_desc_len,
					       card.m_axis_data_dma_read_desc_tag };
			later.push_back({ now + 20 + random() % 40, reads_begun++ });
		}
		for (unsigned segment = 0; segment < SEGMENTS; segment++) {
			if (card.data_dma_ram_rd_resp_valid & card.data_dma_ram_rd_resp_ready &
			    1 << segment) {
				Word word = awaited[segment].front();
				awaited[segment].pop_front();
				const uint8_t *data = reinterpret_cast<const uint8_t *>(
					&card.data_dma_ram_rd_resp_data);
				memcpy(&writes[word.order].data[word.place],
				       data + SEGMENT * segment + word.byte, word.count);
				writes[word.order].left--;
			}
			if (card.data_dma_ram_rd_cmd_valid & card.data_dma_ram_rd_cmd_ready &
			    1 << segment) {
				awaited[segment].push_back(fetches[segment].front());
				fetches[segment].pop_front();
			}
			if (card.data_dma_ram_wr_done & 1 << segment) {
				Order &order = reads[stored[segment].front().order];
				if (!--order.left) {
					read_due.push_back({ now + random() % 20, order.tag });
					reads.erase(stored[segment].front().order);
				}
				stored[segment].pop_front();
			}
			if (card.data_dma_ram_wr_cmd_valid & card.data_dma_ram_wr_cmd_ready &
			    1 << segment) {
				stored[segment].push_back(stores[segment].front());
				stores[segment].pop_front();
			}
		}
		while (writes.count(writes_done) && !writes[writes_done].left) {
			Order &order = writes[writes_done];
			for (unsigned n = 0; n < order.length; n++)
				memory[order.address + n] = order.data[n];
			write_due.push_back({ now + random() % 40, order.tag });
			writes.erase(writes_done++);
		}
	}
};

/* A frame of the card as its peer would send it: addresses exchanged, and another nonce. So the
 * card talks to itself, and thinks that it has a peer.
 */
static void mirror(std::vector<uint8_t> &frame)
{
	static const uint8_t OTHER = 0x5a;
	for (unsigned n = 0; n < 6; n++)
		frame[n] = frame[6 + n];
	frame[10] ^= OTHER, frame[11] ^= OTHER;
	if (frame.size() >= 28 && frame[14] >> 5 == 1)
		for (unsigned n : { 22, 23, 26, 27 })
			frame[n] ^= OTHER;
}

#endif
