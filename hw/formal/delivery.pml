/* The delivery protocol between two cards, each of which sends and receives.
 *
 * A flow is a sender on one card and a receiver on the other; there is one each way. The sender has packets
 * without end, each with a notice, numbered modulo SPACE. Two wires keep the order: packets there,
 * acknowledgements back. The cable loses LOSSES times and doubles DUPLICATES times, what and when it
 * likes; of an acknowledgement it may let the copy go late. A sender's timer runs out TIMEOUTS times when it
 * should not have, and when nothing else can happen any more.
 *
 *   sender    at most WINDOW packets unacknowledged. An acknowledgement counts if it moves forward within
 *             what was ever sent. A NAK or the timer go back to the packet behind the last acknowledged one,
 *             and everything is sent again from there
 *   receiver  executes the expected packet only. A lower one is acknowledged again. A higher one is
 *             dropped; the first of them is answered by a NAK, the next when the expected one has come
 *
 * Checked in every state: notices come in order and once; what is acknowledged was delivered; a timer has to
 * help no more than once for each loss; something can always happen.
 *
 * Messages are counted from the last one acknowledged, so that the numbers wrap for ever and the states
 * are finitely many: when an acknowledgement moves on, all that is counted moves back by as much. The
 * protocol only looks at differences modulo SPACE, which that leaves alone. With MESSAGES there is an end
 * instead, nothing moves back, and the numbers are the ones that travel.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define WINDOW      4
#define SPACE       8
#ifndef LOSSES
#define LOSSES      2
#endif
#ifndef DUPLICATES
#define DUPLICATES  1
#endif
#ifndef WIRE
#define WIRE        3               /* packets that are on their way at once */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS    1
#endif
#ifndef FLOWS
#define FLOWS       2
#endif

#ifdef MUTANT_WINDOW
#undef WINDOW
#define WINDOW      SPACE
#endif

#ifdef MESSAGES
#define HAS(n)      (n < MESSAGES)
#define CYCLE       128             /* counts never come round */
#else
#define HAS(n)      true
#define CYCLE       (2*SPACE)       /* one that is mistaken for its like, SPACE later, is found out */
#endif
#define MINUS(a, b) ((a + CYCLE - b) % CYCLE)

/* A packet: which message it is; its number is that modulo SPACE. An acknowledgement: the message that is
 * expected next, likewise, and whether it is a NAK. */
chan packets[FLOWS] = [WIRE] of { byte };
chan acks[FLOWS]    = [1] of { byte, bool };

byte losses     = LOSSES;
byte duplicates = DUPLICATES;
byte timeouts   = TIMEOUTS;
byte stalls     = 0;
byte expected[FLOWS];               /* by the receiver: messages delivered */
byte copy[FLOWS];                   /* an acknowledgement that the cable held back */
bool late[FLOWS];

proctype Sender(byte me)
{
	byte acked = 0;                 /* messages, counted without end */
	byte next  = 0;
	byte ever  = 0;
	byte message, forward, i;
	bool nak;

	do
	:: d_step { HAS(next) && next < acked + WINDOW && nfull(packets[me]) ->
		packets[me]!next;
		next++;
		if :: next > ever -> ever = next :: else fi }
	:: d_step { HAS(next) && next < acked + WINDOW && losses > 0 ->
		losses--;
		next++;
		if :: next > ever -> ever = next :: else fi }
	:: d_step { HAS(next) && next < acked + WINDOW && duplicates > 0 && len(packets[me]) < WIRE - 1 ->
		duplicates--;
		packets[me]!next;
		packets[me]!next;
		next++;
		if :: next > ever -> ever = next :: else fi }
	:: d_step { acks[me]?message, nak ->
		forward = (message + SPACE - acked % SPACE) % SPACE;
		if
#ifdef MUTANT_ACK
		:: true ->
#else
		:: forward <= ever - acked ->
#endif
			acked = acked + forward;
			assert(acked <= expected[me]);
			if
#ifdef MUTANT_NAK
			:: next < acked -> next = acked
#else
			:: nak || next < acked -> next = acked
#endif
			:: else
			fi;
#ifndef MESSAGES
			next = next - forward; ever = ever - forward; acked = 0;
			expected[me] = expected[me] - forward;
			if :: late[me] -> copy[me] = MINUS(copy[me], forward) :: else fi;
			i = len(packets[me]);
			do
			:: i > 0 -> packets[me]?message; packets[me]!MINUS(message, forward); i--
			:: else -> break
			od;
			i = len(acks[me]);
			do
			:: i > 0 -> acks[me]?message, nak; acks[me]!MINUS(message, forward), nak; i--
			:: else -> break
			od
#endif
		:: else
		fi;
		message = 0; forward = 0; i = 0; nak = false }
	:: d_step { timeouts > 0 && acked < next -> timeouts--; next = acked }
#ifndef MUTANT_TIMER
	:: d_step { timeout && acked < ever ->
		stalls++;
		assert(stalls <= LOSSES);
		next = acked }
#endif
#ifdef MESSAGES
	:: acked == MESSAGES -> break
#endif
	od;
end:	do
	:: acks[me]?_, _
	od
}

proctype Receiver(byte me)
{
	byte message, ahead;
	bool owe  = false;              /* an acknowledgement waits: at most one, its number is taken when it leaves */
	bool nak  = false;              /* and it is a NAK */
	bool told = false;              /* this gap was answered */

end:	do
	:: d_step { packets[me]?message ->
		ahead = (message + SPACE - expected[me] % SPACE) % SPACE;
		if
#ifdef MUTANT_HIGHER
		:: ahead < SPACE/2 ->
#else
		:: ahead == 0 ->
#endif
			assert(message == expected[me]);
			expected[me]++;
			owe = true; nak = false; told = false
		:: ahead >= SPACE/2 ->
#ifdef MUTANT_DUPLICATE
			skip
#else
			owe = true
#endif
		:: else ->
			if
			:: !told -> owe = true; nak = true; told = true
			:: else
			fi
		fi;
		message = 0; ahead = 0 }
	:: d_step { owe && nfull(acks[me]) ->
		acks[me]!expected[me], nak;
		owe = false; nak = false }
	:: d_step { owe && losses > 0 ->
		losses--;
		owe = false; nak = false }
	:: d_step { owe && nfull(acks[me]) && duplicates > 0 && !late[me] ->
		duplicates--;
		late[me] = true; copy[me] = expected[me];
		acks[me]!expected[me], nak;
		owe = false; nak = false }
	/* There are numbers enough for what the cable can hold: 65,536 for a window of 64. */
	:: d_step { late[me] && nfull(acks[me]) && MINUS(expected[me], copy[me]) < SPACE - WINDOW ->
		acks[me]!copy[me], false;
		late[me] = false; copy[me] = 0 }
	:: d_step { late[me] && MINUS(expected[me], copy[me]) >= SPACE - WINDOW ->
		late[me] = false; copy[me] = 0 }
	od
}

init {
	atomic {
		byte flow = 0;
		do
		:: flow < FLOWS -> run Sender(flow); run Receiver(flow); flow++
		:: else -> break
		od;
		flow = 0
	}
}
