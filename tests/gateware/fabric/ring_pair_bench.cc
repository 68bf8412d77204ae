/* Bare nodes of a pair of rings: RTL nodes, cables as delay lines, traffic, cuts, and its check.
 *
 * Each option is NAME=VALUE; ring_bench.py has their meaning and prints the result. The output is
 * one JSON object. The exit code is 1 if a packet came twice, in the wrong order or changed, or if
 * one is missing that no node reported.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "Vring_pair_node.h"
#include "verilated.h"

using Top = Vring_pair_node;
#include "ring_traffic.h"

static constexpr unsigned rings = 2;
/* Cables of a card. NEXT sends ring 0 and receives ring 1. */
enum { NEXT, PREVIOUS };
/* Before the cut, while it lasts, and after it; without a cut there is only the first one. */
static constexpr unsigned phases = 3;

struct Sent {
	uint64_t begin, end; /* its first and its last word went into the sink */
};

struct Node {
	std::unique_ptr<Top> top;
	std::array<std::deque<Word>, rings> wire; /* by ring, to its next node */
	std::array<bool, rings> dead{};		  /* this wire carries nothing */
	std::array<Offer, channels> offers{};
	std::array<uint32_t, channels> turns{};
	std::array<uint64_t, channels> begins{};
	std::array<Arrival, channels> arrivals{};
	std::array<uint64_t, channels> first_words{};
	std::array<unsigned, channels> targets{}; /* of the packets that arrive */
	std::array<std::array<uint32_t, 16>, channels> sent{};
	std::array<std::array<std::map<uint32_t, Sent>, 16>, channels> open;
	std::array<std::array<int64_t, 16>, channels> heard;
	std::array<std::array<bool, 16>, channels> resumed{};
	double credit = 0;
	std::array<uint64_t, phases> words_in{};
	bool was_up = false;
	unsigned address = 0; /* when it was UP last */
	Top *operator->()
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
	uint64_t settle = number("settle");
	double load = number("load"), take = number("take"), stall = number("stall");
	double errors = number("errors"), cuts = number("cuts");
	std::string pattern = options["pattern"], cut = options["cut"];
	Random random{ (uint64_t)number("seed") };

	VerilatedContext context;
	std::vector<Node> cards(nodes);
	for (unsigned n = 0; n < nodes; n++) {
		Node &node = cards[n];
		node.top = std::make_unique<Top>(&context);
		node->nonce = 100 + 2 * n;
		node->sys_rst = 1;
		for (auto &wire : node.wire)
			wire.assign(delay, Word{});
		for (auto &channel : node.heard)
			channel.fill(-1);
	}
	for (unsigned n = 0; n < 4; n++)
		for (auto &node : cards) {
			node->sys_clk = n & 1;
			node->eval();
			node->sys_rst = n < 2;
		}

	uint64_t now = 0, up_at = 0, all_up = 0, begin = 0, stop = 0, cut_at = 0, heal_at = 0;
	uint64_t end = 0, balanced_at = 0, cut_until = 0;
	uint64_t twice = 0, disordered = 0, changed = 0, strayed = 0, reported = 0, lost = 0;
	uint64_t flushed = 0, damaged = 0, dropped = 0, moved = 0, folds = 0, overflows = 0;
	uint64_t downs = 0, progress = 0, busy = 0;
	std::array<uint64_t, phases> span{}, out{}, packets{};
	std::array<std::array<uint64_t, rings>, phases> used{};
	std::vector<uint32_t> way, resumed, outage;
	std::array<uint64_t, phases> waited{};
	uint64_t down_since = 0;
	bool measuring = false, folded = false;
	unsigned place = nodes / 2; /* the cut is between this card and its next one */

	auto choose_target = [&](unsigned n) -> int {
		if (pattern == "uniform")
			return (n + 1 + random.below(nodes - 1)) % nodes;
		if (pattern == "next")
			return (n + 1) % nodes;
		if (pattern == "half")
			return (n + nodes / 2) % nodes;
		if (pattern == "hot")
			return n ? 0 : -1;
		if (pattern == "single")
			return n ? -1 : (int)(nodes / 2);
		fprintf(stderr, "ring_bench: pattern %s\n", pattern.c_str());
		exit(2);
	};
	auto set_cut = [&](const std::string &kind, unsigned at, bool dead) {
		unsigned next = (at + 1) % nodes, before = (at + nodes - 1) % nodes;
		if (kind == "ring" || kind == "cable" || kind == "card")
			cards[at].dead[0] = dead;
		if (kind == "other" || kind == "cable" || kind == "card")
			cards[next].dead[1] = dead;
		if (kind == "card") {
			cards[at].dead[1] = dead;
			cards[before].dead[0] = dead;
		}
	};
	if (nodes < 2 || nodes > 16) {
		fprintf(stderr, "ring_bench: 2 to 16 nodes\n");
		return 2;
	}
	if (cut != "none" && cut != "ring" && cut != "cable" && cut != "card") {
		fprintf(stderr, "ring_bench: cut %s\n", cut.c_str());
		return 2;
	}

	for (;; now++) {
		bool sending = all_up && (!stop || now < stop);
		if (all_up && !measuring && now >= all_up + warmup) {
			measuring = true;
			begin = now;
			cut_at = begin + cycles;
			heal_at = cut_at + cycles;
			stop = end = cut == "none" ? cut_at : heal_at + cycles;
		}
		if (measuring && cut != "none" && now == cut_at)
			set_cut(cut, place, true);
		if (measuring && cut != "none" && now == heal_at)
			set_cut(cut, place, false);
		int phase = -1;
		if (measuring && now < end) {
			if (now < cut_at)
				phase = 0;
			else if (now >= cut_at + settle && now < heal_at)
				phase = 1;
			else if (now >= heal_at + settle)
				phase = 2;
		}
		if (phase >= 0)
			span[phase]++;
		/* Random cuts, of any lanes at one place. */
		if (cuts && cut_until && cut_until <= now) {
			for (auto &node : cards)
				node.dead = {};
			cut_until = 0;
		}
		if (cuts && sending && random.chance(cuts)) {
			static const char *const kinds[] = { "ring", "other", "cable", "card" };
			set_cut(kinds[random.below(4)], random.below(nodes), true);
			cut_until = now + 1 + random.below(random.below(2) ? 400 : 20000);
		}
		bool down = false;
		for (unsigned n = 0; n < nodes; n++) {
			Node &node = cards[n];
			auto receive = [&](unsigned ring, unsigned from, auto &signal, auto &valid,
					   auto &data, auto &k, auto &error) {
				Word word = cards[from].wire[ring].front();
				if (cards[from].dead[ring])
					word = {};
				if (word.valid && errors && sending && random.chance(errors)) {
					word.error = 1 << random.below(4);
					word.data ^= 1u << random.below(32);
				}
				signal = !cards[from].dead[ring];
				valid = word.valid;
				data = word.data;
				k = word.k;
				error = word.error;
			};
			Top &top = *node.top;
			receive(0, (n + nodes - 1) % nodes, top.signal1, top.rx1_valid,
				top.rx1_data, top.rx1_k, top.rx1_code_error);
			receive(1, (n + 1) % nodes, top.signal0, top.rx0_valid, top.rx0_data,
				top.rx0_k, top.rx0_code_error);
			top.tx0_ready = !random.chance(stall);
			top.tx1_ready = !random.chance(stall);
			if (sending && load < 1)
				node.credit += load;
			for (unsigned c = 0; c < channels; c++) {
				Offer &offer = node.offers[c];
				if (!offer.active && sending && mask >> c & 1 &&
				    (load >= 1 || node.credit > 0)) {
					unsigned size =
						least_words + random.below(words - least_words + 1);
					int target = choose_target(n);
					if (target >= 0) {
						offer = { (unsigned)target,	  size, 0,
							  node.sent[c][target]++, true, now };
						node.open[c][target][offer.sequence] = { now, now };
						/* As discovery does. */
						node.turns[c] =
							(cards[target].address - node.address) & 15;
						if (load < 1)
							node.credit -=
								size * 2 *
								((random.next() >> 11) * 0x1p-53);
					}
				}
				uint32_t prefix = node.turns[c] | crc8(node.turns[c], 3) << 24;
				with_sink(top, c,
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
					top, c,
					[&](auto &, auto &ready, auto &, auto &, auto &, auto &) {
						ready = random.chance(
							pattern == "hot" && n != 0 ? 1.0 : take);
					});
			}
		}
		for (auto &node : cards) {
			node->sys_clk = 0;
			node->eval();
		}
		bool quiet = true, balanced = true;
		for (unsigned n = 0; n < nodes; n++) {
			Node &node = cards[n];
			Top &top = *node.top;
			down |= !top.up;
			balanced &= top.balanced;
			folded |= top.folded;
			downs += node.was_up && !top.up;
			node.was_up = top.up;
			if (top.up)
				node.address = top.address;
			auto send = [&](unsigned ring, bool valid, uint32_t data, unsigned k) {
				Word word = { valid, data, (uint8_t)k, 0 };
				node.wire[ring].push_back(word);
				node.wire[ring].pop_front();
				if (phase >= 0 && valid && !(k & 1 && (data & 0xff) == 0xbc))
					used[phase][ring]++;
			};
			send(0, top.tx0_valid && top.tx0_ready, top.tx0_data, top.tx0_k);
			send(1, top.tx1_valid && top.tx1_ready, top.tx1_data, top.tx1_k);
			auto event = [&](bool valid, unsigned status) {
				if (!valid || status == GRANT)
					return;
				busy += status == BUSY_A || status == BUSY_B;
				damaged += status == DAMAGED;
				lost += status == LOST;
				reported += status == DAMAGED || status == LOST;
			};
			event(top.event0_valid, top.event0_status);
			event(top.event1_valid, top.event1_status);
			dropped += top.did_dropped;
			flushed += top.did_flushed;
			reported += top.did_dropped + top.did_flushed;
			moved += top.did_moved;
			folds += top.did_folded;
			overflows += top.count_slack_overflow;
			for (unsigned c = 0; c < channels; c++) {
				Offer &offer = node.offers[c];
				with_sink(top, c,
					  [&](auto &valid, auto &ready, auto &, auto &, auto &last,
					      auto &, auto &) {
						  if (!valid || !ready)
							  return;
						  if (phase >= 0)
							  node.words_in[phase]++;
						  if (offer.at == 0)
							  node.begins[c] = now;
						  offer.at++;
						  if (last) {
							  offer.active = false;
							  node.open[c][offer.target]
								   [offer.sequence] = {
								  node.begins[c], now
							  };
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
						if (first) {
							arrival = { true, data & 0xff,
								    1,	  data >> 16,
								    0,	  (data & 0xff) < nodes };
							node.first_words[c] = now;
							node.targets[c] = data >> 8 & 0xff;
						} else if (++arrival.words == 2) {
							arrival.sequence = data;
						} else {
							arrival.right &=
								data == payload(arrival.source,
										node.targets[c], c,
										arrival.sequence,
										arrival.words);
						}
						if (phase >= 0)
							out[phase]++;
						if (!last)
							return;
						arrival.inside = false;
						if (bad)
							return;
						if (!arrival.right ||
						    arrival.words != arrival.expected) {
							changed++;
							return;
						}
						unsigned target = node.targets[c];
						auto &sent = cards[arrival.source].open[c][target];
						auto found = sent.find(arrival.sequence);
						int64_t &last_heard =
							cards[arrival.source].heard[c][target];
						if (found == sent.end()) {
							twice++;
							return;
						}
						/* Its route was found before a card went off, so
						 * its packet layer drops it. Two cards have no
						 * common order. */
						if (target != n) {
							strayed++;
							sent.erase(found);
							return;
						}
						if ((int64_t)arrival.sequence <= last_heard)
							disordered++;
						last_heard = arrival.sequence;
						bool &again =
							cards[arrival.source].resumed[c][target];
						if (cut != "none" && measuring && now >= cut_at &&
						    now < heal_at &&
						    found->second.begin >= cut_at && !again) {
							again = true;
							resumed.push_back(node.first_words[c] -
									  cut_at);
						}
						if (phase >= 0) {
							packets[phase]++;
							waited[phase] += now - found->second.end;
						}
						if (phase == 0)
							way.push_back(now - found->second.end);
						progress = now;
						sent.erase(found);
					});
				quiet &= !offer.active && !arrival.inside;
				with_source(top, c,
					    [&](auto &valid, auto &, auto &, auto &, auto &,
						auto &) { quiet &= !valid; });
			}
			quiet &= !top.open;
		}
		if (!all_up && balanced)
			all_up = up_at = now;
		if (cut != "none" && measuring && now > heal_at + 1 && balanced && !balanced_at)
			balanced_at = now;
		if (all_up) {
			if (down && !down_since)
				down_since = now;
			if (!down && down_since) {
				outage.push_back(now - down_since);
				down_since = 0;
			}
		} else if (now > 100000) {
			fprintf(stderr, "ring_bench: the pair does not come up\n");
			return 2;
		}
		for (auto &node : cards) {
			node->sys_clk = 1;
			node->eval();
		}
		if (stop && now > std::max(stop, progress) + drain &&
		    (quiet || now > std::max(stop, progress) + 200000))
			break;
	}

	uint64_t missing = 0;
	for (auto &node : cards)
		for (auto &channel : node.open)
			for (auto &target : channel)
				missing += target.size();
	printf("{\"nodes\": %u, \"delay\": %u, \"words\": %u, \"pattern\": \"%s\", \"cut\": \"%s\", "
	       "\"up_cycles\": %" PRIu64 ",\n",
	       nodes, delay, words, pattern.c_str(), cut.c_str(), up_at);
	unsigned count = cut == "none" ? 1 : phases;
	auto list = [&](const char *name, auto value) {
		printf("\"%s\": [", name);
		for (unsigned p = 0; p < count; p++)
			printf("%s%.5f", p ? ", " : "", value(p));
		printf("],\n");
	};
	list("throughput", [&](unsigned p) { return (double)out[p] / span[p]; });
	list("mean_latency",
	     [&](unsigned p) { return packets[p] ? (double)waited[p] / packets[p] : 0; });
	list("used0", [&](unsigned p) { return (double)used[p][0] / span[p] / nodes; });
	list("used1", [&](unsigned p) { return (double)used[p][1] / span[p] / nodes; });
	list("jain", [&](unsigned p) {
		double total = 0, squares = 0;
		unsigned senders = 0;
		for (unsigned n = 0; n < nodes; n++) {
			if ((pattern == "hot" && n == 0) || (pattern == "single" && n))
				continue;
			double share = cards[n].words_in[p];
			total += share;
			squares += share * share;
			senders++;
		}
		return squares ? total * total / (senders * squares) : 0;
	});
	print_latency("latency", way);
	print_latency("resumed", resumed);
	print_latency("outage", outage);
	printf("\"balanced_after\": %" PRIu64 ", \"folded\": %s, \"folds\": %" PRIu64
	       ", \"moved\": %" PRIu64 ", \"port_lost\": %" PRIu64 ",\n",
	       balanced_at ? balanced_at - heal_at : 0, folded ? "true" : "false", folds, moved,
	       downs);
	printf("\"lost\": %" PRIu64 ", \"flushed\": %" PRIu64 ", \"damaged\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"busy\": %" PRIu64 ", \"overflows\": %" PRIu64 ",\n",
	       lost, flushed, damaged, dropped, busy, overflows);
	bool failed = twice || disordered || changed || missing > reported;
	printf("\"missing\": %" PRIu64 ", \"reported\": %" PRIu64 ", \"strayed\": %" PRIu64
	       ", \"twice\": %" PRIu64 ", \"disordered\": %" PRIu64 ", \"changed\": %" PRIu64
	       ", \"failed\": %s}\n",
	       missing, reported, strayed, twice, disordered, changed, failed ? "true" : "false");
	return failed;
}
