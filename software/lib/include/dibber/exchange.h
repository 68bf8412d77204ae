/**
 * libdibber: what programs on several hosts tell each other before and after they use their cards.
 *
 * Each program is a party. Party 0 listens, the others connect to it by TCP. Parties publish values
 * by name, keys of regions for example, look up those of the others, and meet at barriers. A
 * transfer between cards needs none of this, so an exchange belongs before and after the part of a
 * program that is measured.
 *
 * libdibber.Exchange of Python speaks the same protocol (docs/two-hosts.md). Party 0 passes on what
 * the others publish, inside its own calls. The token keeps mistakes and strangers out. It is sent
 * as it is, so it does not help against somebody who reads the network.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_H
#define DIBBER_EXCHANGE_H

#include <dibber/dibber.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Exchange ------------------------------------------------------------------------------------- */

#define DIB_EXCHANGE_PARTIES 64u	/* at most */
#define DIB_EXCHANGE_NAME    63u	/* bytes of the longest name */
#define DIB_EXCHANGE_DATA    (1u << 20) /* bytes of the longest value */
#define DIB_EXCHANGE_TOKEN   64u	/* bytes of the longest token */
#define DIB_EXCHANGE_VALUES  4096u	/* that a party may publish */

struct dib_exchange;

struct dib_exchange_options {
	uint32_t party;		       /* of dib_exchange_connect(); 0: party 1 */
	uint32_t parties;	       /* 2 to DIB_EXCHANGE_PARTIES; 0: 2 */
	const char *token;	       /* all parties give the same; NULL: none */
	uint64_t timeout_ns;	       /* of each call that waits; 0: 60 seconds */
	struct dib_endpoint *endpoint; /* its clock is left while a call waits; NULL: none */
};

/**
 * dib_exchange_listen() - be party 0, and wait until all others have connected.
 * @where:    "PORT", "HOST:PORT", "[IPv6]:PORT", or "file:PATH"
 * @options:  NULL: two parties, no token
 * @exchange: set to the new exchange; the caller closes it
 *
 * "file:PATH" is a rendezvous file. The call makes it, with this host's addresses and a token, for
 * this user alone, and removes it when all parties are there.
 *
 * A connection of something else is turned away: one with another token or version, one that says
 * nothing for 5 seconds, one that speaks another protocol. The wait goes on. If it ends with
 * TIMEOUT, the reason has the last of these.
 *
 * An exchange belongs to one thread. With an endpoint, the errors of dib_clock_leave() come too, in
 * all calls that wait.
 *
 * Errors: ARGUMENT, IN_USE (the port is taken), TIMEOUT (a party did not come), NO_MEMORY.
 */
int dib_exchange_listen(const char *where, const struct dib_exchange_options *options,
			struct dib_exchange **exchange);

/**
 * dib_exchange_connect() - be another party: connect to party 0 as soon as it listens.
 * @where:    "HOST:PORT", "[IPv6]:PORT", or "file:PATH", the file that party 0 makes
 * @options:  NULL: party 1 of two, no token
 * @exchange: set to the new exchange; the caller closes it
 *
 * Errors: ARGUMENT (also: party 0 has another number of parties), TIMEOUT (nobody listens), VERSION
 * (the other side speaks another version of the protocol), DENIED (it does not accept the token),
 * IN_USE (the party's number is taken), PROTOCOL (the other side is no exchange), NO_MEMORY.
 */
int dib_exchange_connect(const char *where, const struct dib_exchange_options *options,
			 struct dib_exchange **exchange);

/**
 * dib_exchange_close() - send what is still to be sent, and leave.
 *
 * The others can use what this party has published.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_exchange_close(struct dib_exchange *exchange);

/**
 * dib_exchange_publish() - give a value to all parties.
 * @name:   1 to DIB_EXCHANGE_NAME bytes; once for each party
 * @data:   copied
 * @length: bytes, at most DIB_EXCHANGE_DATA
 *
 * The call does not wait.
 *
 * Errors: ARGUMENT, IN_USE (this party has published the name already), NO_MEMORY, CLOSED, FORKED.
 */
int dib_exchange_publish(struct dib_exchange *exchange, const char *name, const void *data,
			 size_t length);

/**
 * dib_exchange_look_up() - the value that a party has published, as soon as it is here.
 * @party:  also this one
 * @data:   where the value is copied to
 * @room:   bytes there
 * @length: set to the bytes of the value; NULL: they must be @room
 *
 * With an endpoint the call pauses its clock meanwhile (dib_clock_pause()). Simulated time then
 * goes on for the others, so a run repeats to the cycle only if the value is here already, as it is
 * behind a barrier.
 *
 * Errors: ARGUMENT (no such party; the value has another length), TIMEOUT, LOST (the party left
 * without it), CLOSED, FORKED.
 */
int dib_exchange_look_up(struct dib_exchange *exchange, uint32_t party, const char *name,
			 void *data, size_t room, size_t *length);

/**
 * dib_exchange_barrier() - wait until all parties have come here.
 *
 * What a party published before the barrier is here behind it. With an endpoint the call leaves the
 * simulator's clock and enters it again (dib_clock_leave()), so runs repeat.
 *
 * Errors: ARGUMENT, TIMEOUT, LOST (a party has left), CLOSED, FORKED.
 */
int dib_exchange_barrier(struct dib_exchange *exchange);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
