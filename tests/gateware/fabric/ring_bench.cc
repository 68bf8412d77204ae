/* A ring of bare nodes: RTL nodes, cables as delay lines, traffic and its check.
 *
 * Each option is NAME=VALUE; ring_bench.py has their meaning and prints the result. The output is
 * one JSON object. The exit code is 1 if a packet came twice, in the wrong order or changed, or if
 * one is missing that no node reported.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "Vring_node.h"
#include "verilated.h"

using Top = Vring_node;
#include "ring_traffic.h"

static constexpr unsigned slots = 4;
static constexpr unsigned answer_channel = 0, answer_words = 8; /* as an acknowledgement */

struct Answer {
	unsigned target;
	uint64_t since, came; /* the packet was whole at its source's sink, and left the ring */
};

struct Node {
	std::unique_ptr<Vring_node> top;
	std::deque<Word> wire; /* to the next node */
	std::array<Offer, channels> offers{};
	std::array<Arrival, channels> arrivals{};
	std::array<std::array<uint32_t, 16>, channels> sent{};
	std::array<std::array<std::map<uint32_t, uint64_t>, 16>, channels> open;
	std::array<std::array<int64_t, 16>, channels> heard;
	double credit = 0;
	uint64_t words_in = 0, words_out = 0, packets_out = 0;
	uint64_t used = 0;
	std::deque<uint64_t> begun;
	std::deque<Answer> answers; /* of CONTROL, that wait */
	std::map<uint64_t, Answer> answering;
	/* by channel and slot: when it was refused first, refusals after that */
	uint64_t refused_at[channels][slots]{};
	unsigned refusals[channels][slots]{};
	bool reserved[channels][slots]{};
	Vring_node *operator->()
	{
		return top.get();
	}
};

int main(int argc, char **argv)
{
	for (int n = 1; n < argc; n++)
		if (char *equals = strchr(argv[n], '='))
			options[std::string(argv[n], equals)] = equals + 1;
	unsigned nodes = number("nodes"), delay = number("delay"), words = number("words");
	unsigned least_words = number("least_words"), mask = number("channels");
	uint64_t warmup = number("warmup"), cycles = number("cycles"), drain = number("drain");
	double load = number("load"), take = number("take"), stall = number("stall");
	double errors = number("errors"), cuts = number("cuts");
	bool answers = number("answers");
	std::string pattern = options["pattern"];
	Random random{ (uint64_t)number("seed") };

	VerilatedContext context;
	std::vector<Node> ring(nodes);
	for (unsigned n = 0; n < nodes; n++) {
		Node &node = ring[n];
		node.top = std::make_unique<Vring_node>(&context);
		node->nonce = 100 + n;
		node->signal = 1;
		node->sys_rst = 1;
		node.wire.assign(delay, Word{});
		for (auto &channel : node.heard)
			channel.fill(-1);
	}
	for (unsigned n = 0; n < 4; n++)
		for (auto &node : ring) {
			node->sys_clk = n & 1;
			node->eval();
			node->sys_rst = n < 2;
		}

	uint64_t now = 0, up_at = 0, all_up = 0, stop = 0;
	uint64_t twice = 0, disordered = 0, changed = 0, overflows = 0, losses = 0;
	uint64_t lost = 0, dropped = 0, flushed = 0, scrubbed = 0, expired = 0, go_set = 0,
		 stalled = 0, busy = 0;
	uint64_t order = 0, damaged = 0, sends = 0, grants = 0, cut_until = 0, downs = 0,
		 misrouted = 0;
	unsigned cut_at = 0, most_refusals = 0, most_bypass = 0;
	std::vector<uint32_t> way, echo, waits, outage, answered, acknowledged;
	uint64_t down_since = 0, progress = 0; /* when a packet came last */
	bool measuring = false;
	uint64_t begin = 0, end = 0;

	auto choose_target = [&](unsigned n) -> int {
		if (pattern == "uniform")
			return (n + 1 + random.below(nodes - 1)) % nodes;
		if (pattern == "next")
			return (n + 1) % nodes;
		if (pattern == "half")
			return (n + nodes / 2) % nodes;
		if (pattern == "hot")
			return n ? 0 : -1;
		if (pattern == "sender") /* one sends as much as it can, the others little */
			return (n + 1 + random.below(nodes - 1)) % nodes;
		if (pattern == "single")
			return n ? -1 : (int)(nodes / 2);
		fprintf(stderr, "ring_bench: pattern %s\n", pattern.c_str());
		exit(2);
	};

	for (;; now++) {
		bool sending = all_up && (!stop || now < stop);
		if (all_up && !measuring && now >= all_up + warmup) {
			measuring = true;
			begin = now;
			stop = now + cycles;
			end = stop;
		}
		bool in_window = measuring && now < end;
		bool down = false;
		for (unsigned n = 0; n < nodes; n++) {
			Node &node = ring[n];
			Node &before = ring[(n + nodes - 1) % nodes];
			/* The cable that comes from the node before. */
			Word word = before.wire.front();
			if (cut_until > now && cut_at == n)
				word = {};
			if (word.valid && errors && sending && random.chance(errors)) {
				word.error = 1 << random.below(4);
				word.data ^= 1u << random.below(32);
			}
			node->signal = !(cut_until > now && cut_at == n);
			node->rx_valid = word.valid;
			node->rx_data = word.data;
			node->rx_k = word.k;
			node->rx_code_error = word.error;
			node->rx_disparity_error = 0;
			node->tx_ready = !random.chance(stall);
			node->retrain = 0;
			/* A load is words a cycle; with pattern `sender` it is that of the others.
			 */
			double own = pattern == "sender" && n == 0 ? 1.0 : load;
			if (sending && own < 1)
				node.credit += own;
			for (unsigned c = 0; c < channels; c++) {
				Offer &offer = node.offers[c];
				if (c == answer_channel && answers && !offer.active &&
				    !node.answers.empty()) {
					Answer answer = node.answers.front();
					node.answers.pop_front();
					offer = { answer.target,
						  answer_words,
						  0,
						  node.sent[c][answer.target]++,
						  true,
						  now };
					node.open[c][answer.target][offer.sequence] = now;
					node.answering[(uint64_t)answer.target << 32 |
						       offer.sequence] = answer;
				}
				if (!offer.active && sending && mask >> c & 1 &&
				    (own >= 1 || node.credit > 0)) {
					unsigned size =
						least_words + random.below(words - least_words + 1);
					/* Poisson-like: the credit goes below zero by a random
					 * amount. */
					int target = choose_target(n);
					if (target >= 0) {
						offer = { (unsigned)target,	  size, 0,
							  node.sent[c][target]++, true, now };
						node.open[c][target][offer.sequence] = now;
						if (own < 1)
							node.credit -=
								size * 2 *
								((random.next() >> 11) * 0x1p-53);
					}
				}
				uint32_t turn = (offer.target + nodes - n) % nodes;
				uint32_t prefix = turn | crc8(turn, 3) << 24;
				with_sink(*node.top, c,
					  [&](auto &valid, auto &, auto &data, auto &first,
					      auto &last, auto &bad, auto &prefixes) {
						  valid = offer.active;
						  first = offer.at == 0;
						  last = offer.at == offer.words;
						  bad = 0;
						  prefixes = 1;
						  data = offer.at == 0	 ? prefix
							 : offer.at == 1 ? (n | offer.target << 8 |
									    offer.words << 16)
							 : offer.at == 2
								 ? offer.sequence
								 : payload(n, offer.target, c,
									   offer.sequence,
									   offer.at);
					  });
				with_source(
					*node.top, c,
					[&](auto &, auto &ready, auto &, auto &, auto &, auto &) {
						ready = random.chance(
							pattern == "hot" && n != 0 ? 1.0 : take);
					});
			}
		}
		for (auto &node : ring) {
			node->sys_clk = 0;
			node->eval();
		}
		bool quiet = true;
		for (unsigned n = 0; n < nodes; n++) {
			Node &node = ring[n];
			Vring_node &top = *node.top;
			down |= !top.up;
			Word word = { top.tx_valid && top.tx_ready, top.tx_data, (uint8_t)top.tx_k,
				      0 };
			node.wire.push_back(word);
			node.wire.pop_front();
			if (in_window && word.valid && !(word.k & 1 && (word.data & 0xff) == 0xbc))
				node.used++;
			if (top.leaves) {
				node.begun.push_back(now);
				sends += in_window;
			}
			if (top.event_valid) {
				unsigned c = top.event_channel, s = top.event_slot,
					 status = top.event_status;
				if (status == GRANT) {
					grants += in_window;
				} else {
					if (!node.begun.empty()) {
						if (in_window && status == ACCEPTED)
							echo.push_back(now - node.begun.front());
						node.begun.pop_front();
					}
					if (status == BUSY_A || status == BUSY_B) {
						busy += in_window;
						if (!node.reserved[c][s]) {
							node.reserved[c][s] = true;
							node.refused_at[c][s] = now;
							node.refusals[c][s] = 0;
						} else {
							node.refusals[c][s]++;
						}
					} else if (status == ORDER) {
						order += in_window;
					} else {
						if (node.reserved[c][s]) {
							most_refusals = std::max(
								most_refusals, node.refusals[c][s]);
							waits.push_back(now -
									node.refused_at[c][s]);
						}
						node.reserved[c][s] = false;
						damaged += status == DAMAGED;
						lost += status == LOST;
					}
				}
			}
			dropped += top.did_dropped;
			flushed += top.did_flushed;
			scrubbed += top.did_scrubbed;
			expired += top.did_expired;
			go_set += top.did_go_set;
			stalled += in_window && top.did_stalled;
			overflows += top.count_slack_overflow;
			losses += top.count_link_lost;
			misrouted += top.count_packet_misrouted;
			most_bypass = std::max<unsigned>(most_bypass, top.bypass_level);
			for (unsigned c = 0; c < channels; c++) {
				Offer &offer = node.offers[c];
				with_sink(top, c,
					  [&](auto &valid, auto &ready, auto &, auto &, auto &last,
					      auto &, auto &) {
						  if (valid && ready) {
							  node.words_in += in_window;
							  offer.at++;
							  if (last) {
								  offer.active = false;
								  node.open[c][offer.target]
									   [offer.sequence] = now;
							  }
						  }
					  });
				Arrival &arrival = node.arrivals[c];
				with_source(
					top, c,
					[&](auto &valid, auto &ready, auto &data, auto &first,
					    auto &last, auto &bad) {
						if (!valid || !ready)
							return;
						if (first != !arrival.inside)
							changed++;
						if (first)
							arrival = {
								true,
								data & 0xff,
								1,
								data >> 16,
								0,
								(data >> 8 & 0xff) == n && (data & 0xff) < nodes
							};
						else if (++arrival.words == 2)
							arrival.sequence = data;
						else
							arrival.right &=
								data == payload(arrival.source, n,
										c, arrival.sequence,
										arrival.words);
						node.words_out += in_window;
						if (!last)
							return;
						arrival.inside = false;
						if (bad) {
							return;
						}
						if (!arrival.right ||
						    arrival.words != arrival.expected) {
							changed++;
							return;
						}
						auto &sent = ring[arrival.source].open[c][n];
						auto found = sent.find(arrival.sequence);
						int64_t &last_heard =
							ring[arrival.source].heard[c][n];
						if (found == sent.end()) {
							twice++;
							return;
						}
						if ((int64_t)arrival.sequence <= last_heard)
							disordered++;
						last_heard = arrival.sequence;
						if (answers && c == answer_channel) {
							auto answer =
								ring[arrival.source].answering.find(
									(uint64_t)n << 32 |
									arrival.sequence);
							if (in_window) {
								answered.push_back(
									now - answer->second.came);
								acknowledged.push_back(
									now - answer->second.since);
							}
							ring[arrival.source].answering.erase(
								answer);
						} else if (in_window) {
							way.push_back(now - found->second);
							node.packets_out++;
						}
						if (answers && c != answer_channel)
							node.answers.push_back({ arrival.source,
										 found->second,
										 now });
						progress = now;
						sent.erase(found);
					});
				quiet &= !offer.active && !arrival.inside && node.answers.empty();
				with_source(top, c,
					    [&](auto &valid, auto &, auto &, auto &, auto &,
						auto &) { quiet &= !valid; });
			}
			quiet &= node.begun.empty() && !top.stopped;
		}
		if (!all_up && !down)
			all_up = up_at = now;
		if (all_up) {
			if (down && !down_since) {
				down_since = now;
				downs++;
			}
			if (!down && down_since) {
				outage.push_back(now - down_since);
				down_since = 0;
			}
			if (cuts && sending && cut_until <= now && !down && random.chance(cuts)) {
				cut_at = random.below(nodes);
				cut_until = now + 1 + random.below(400);
			}
		} else if (now > 100000) {
			fprintf(stderr, "ring_bench: the ring does not come up\n");
			return 2;
		}
		for (auto &node : ring) {
			node->sys_clk = 1;
			node->eval();
		}
		if (stop && now > std::max(stop, progress) + drain &&
		    (quiet || now > std::max(stop, progress) + 200000))
			break;
	}

	uint64_t missing = 0, reported = lost + damaged + dropped + flushed;
	for (auto &node : ring) {
		for (auto &channel : node.open)
			for (auto &target : channel)
				missing += target.size();
	}
	double total = 0, squares = 0;
	unsigned senders = 0;
	printf("{\"nodes\": %u, \"delay\": %u, \"words\": %u, \"pattern\": \"%s\", \"up_cycles\": %" PRIu64
	       ",\n",
	       nodes, delay, words, pattern.c_str(), up_at);
	printf("\"sent\": [");
	for (unsigned n = 0; n < nodes; n++) {
		double share = (double)ring[n].words_in / cycles;
		printf("%s%.5f", n ? ", " : "", share);
		if (!(pattern == "hot" && n == 0) && !(pattern == "single" && n != 0)) {
			total += share;
			squares += share * share;
			senders++;
		}
	}
	printf("],\n\"received\": [");
	double received = 0;
	uint64_t packets = 0;
	for (unsigned n = 0; n < nodes; n++) {
		printf("%s%.5f", n ? ", " : "", (double)ring[n].words_out / cycles);
		received += (double)ring[n].words_out / cycles;
		packets += ring[n].packets_out;
	}
	printf("],\n\"used\": [");
	for (unsigned n = 0; n < nodes; n++)
		printf("%s%.5f", n ? ", " : "", (double)ring[n].used / cycles);
	printf("],\n\"throughput\": %.5f, \"packets\": %" PRIu64 ", \"jain\": %.5f,\n", received,
	       packets, squares ? total * total / (senders * squares) : 0);
	print_latency("latency", way);
	print_latency("send_to_echo", echo);
	print_latency("reserved", waits);
	print_latency("outage", outage);
	print_latency("answered", answered);
	print_latency("acknowledged", acknowledged);
	printf("\"sends\": %" PRIu64 ", \"busy\": %" PRIu64 ", \"order\": %" PRIu64
	       ", \"grants\": %" PRIu64
	       ", \"refusals_after_reservation\": %u, \"stalled\": %.5f, \"bypass_high\": %u,\n",
	       sends, busy, order, grants, most_refusals, (double)stalled / cycles / nodes,
	       most_bypass);
	printf("\"lost\": %" PRIu64 ", \"damaged\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"flushed\": %" PRIu64 ", \"scrubbed\": %" PRIu64 ", \"expired\": %" PRIu64
	       ", \"go_set\": %" PRIu64 ", \"misrouted\": %" PRIu64 ", \"overflows\": %" PRIu64
	       ", \"link_lost\": %" PRIu64 ",\n",
	       lost, damaged, dropped, flushed, scrubbed, expired, go_set, misrouted, overflows,
	       losses);
	bool failed = twice || disordered || changed || missing > reported;
	printf("\"missing\": %" PRIu64 ", \"reported\": %" PRIu64 ", \"twice\": %" PRIu64
	       ", \"disordered\": %" PRIu64 ", \"changed\": %" PRIu64 ", \"failed\": %s}\n",
	       missing, reported, twice, disordered, changed, failed ? "true" : "false");
	return failed;
}
