/* Echo, retry and scrubber of a ring: two sources, one target, three nodes.
 *
 * Node 0 and node 1 each have PACKETS packets for node 2, and send them before earlier echoes
 * are there. Node 1 is the scrubber. Each wire keeps the order. It loses LOSSES words of any
 * kind, and makes STRAYS packets that have no target and no source on this ring.
 *
 *   target    has room for ROOM packets, and takes them away when it likes. It refuses a packet without
 *             room or grant; its source then has a reservation, of the older or the younger set. From a
 *             source with a reservation it accepts only what has HEAD
 *   source    numbers what leaves. An echo with a later number shows that those before it were lost. A
 *             refused packet waits for its grant; those behind it are doomed, and nothing is sent behind
 *             them. What is lost is reported and never sent again
 *   time      passes only when nothing else can happen: the oldest packet is lost, what waits is sent
 *
 * Checked in every state: packets are accepted once and in order; a stray goes round at most twice;
 * without losses no packet is refused again after its reservation; something can always happen. At the
 * end each packet was accepted or reported.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef PACKETS
#define PACKETS 2
#endif
#define SPACE   8               /* numbers */
#ifndef SOURCES
#define SOURCES 2
#endif
#ifndef ROOM
#define ROOM    1
#endif
#ifndef LOSSES
#define LOSSES  1
#endif
#ifndef STRAYS
#define STRAYS  0
#endif
#define TARGET   2
#define SCRUBBER 1
#define NOBODY   3
#define HOPS     6              /* twice round */

mtype = { PACKET, ECHO, GRANT };
#define ACCEPTED 0
#define BUSY     1
#define ORDER    2

#define FILLED  0
#define SENT    1
#define WAITING 2
#define DONE    3

/* kind, target, source, number, packet or status, HEAD, OLD, hops */
chan wire[3] = [4] of { mtype, byte, byte, byte, byte, bool, bool, byte };

byte losses = LOSSES;
byte strays = STRAYS;

/* of the sources, by source*PACKETS + packet */
byte state[2*PACKETS];
bool doomed[2*PACKETS];
bool reported[2*PACKETS];
byte refusals[2*PACKETS];
byte place[2*SPACE];            /* which packet had a number */
byte next[2];
byte oldest[2];

/* of the target */
byte expected[2];
bool accepted[2*PACKETS];
byte room = 0;                  /* it begins full */
bool older[2], younger[2], granted[2];
byte grants;

#define COUNT(s)  ((next[s] + SPACE - oldest[s]) % SPACE)
#define P(s, n)   state[(s)*PACKETS + (n)]
/* Packet n may go: those before it are done, or SENT and not doomed. */
#define CLEAR(s, n) (P(s, n) == DONE || (P(s, n) == SENT && !doomed[(s)*PACKETS + (n)]))
#define GO(s, n)    (n < PACKETS && P(s, n) == FILLED && (n < 1 || CLEAR(s, n - 1)) && (n < 2 || CLEAR(s, n - 2)))
#define ENDED     (P(0, 0) == DONE && P(0, 1) == DONE && P(0, PACKETS - 1) == DONE && \
		   P(1, 0) == DONE && P(1, 1) == DONE && P(1, PACKETS - 1) == DONE)

inline report(s)                /* the oldest packet of a source is lost */
{
	j = s*PACKETS + place[s*SPACE + oldest[s]];
#ifdef MUTANT_AGAIN
	state[j] = FILLED;
#else
	state[j] = DONE;
#endif
	reported[j] = true;
	doomed[j] = false;
	oldest[s] = (oldest[s] + 1) % SPACE
}

inline refused(s, n)            /* what is SENT behind packet n is doomed */
{
#ifndef MUTANT_DOOM
	i = n + 1;
	do
	:: i < PACKETS ->
		if :: P(s, i) == SENT -> doomed[s*PACKETS + i] = true :: else fi;
		i++
	:: else -> break
	od
#else
	skip
#endif
}

inline answered(s, number, status)
{
	i = (number + SPACE - oldest[s]) % SPACE;
	if
	:: i < COUNT(s) ->
#ifdef MUTANT_GAP
		i = 0;
#endif
		do
		:: i > 0 -> report(s); i--
		:: else -> break
		od;
		n = place[s*SPACE + oldest[s]];
		oldest[s] = (oldest[s] + 1) % SPACE;
		doomed[s*PACKETS + n] = false;
		if
		:: status == ACCEPTED -> P(s, n) = DONE
		:: status == BUSY ->
			P(s, n) = WAITING;
			refusals[s*PACKETS + n]++;
			assert(LOSSES > 0 || refusals[s*PACKETS + n] <= 1);
			refused(s, n)
		:: status == ORDER -> P(s, n) = FILLED; refused(s, n)
		fi
	:: else
	fi
}

inline decide(s, id, head)      /* a packet at its target: `status` of its echo */
{
	if
#ifndef MUTANT_ORDER
	:: (older[s] || younger[s]) && !head -> status = ORDER
	:: !((older[s] || younger[s]) && !head) &&
#else
	::
#endif
	   (granted[s] || (room > grants && (older[s] || !(older[0] || older[1] || younger[0] || younger[1])))) ->
		status = ACCEPTED;
		assert(id >= expected[s]);
		assert(room > 0);
		expected[s] = id + 1;
		accepted[s*PACKETS + id] = true;
		room--;
		if :: granted[s] -> grants-- :: else fi;
		older[s] = false; younger[s] = false; granted[s] = false
	:: else ->
		status = BUSY;
		if
		:: older[s] || younger[s]
		:: else ->
			if
			:: older[0] || older[1] || younger[0] || younger[1] -> younger[s] = true
			:: else -> older[s] = true
			fi
		fi
	fi;
	if
	:: !older[0] && !older[1] && (younger[0] || younger[1]) ->
		older[0] = younger[0]; older[1] = younger[1];
		younger[0] = false; younger[1] = false
	:: else
	fi
}

proctype Node(byte me)
{
	mtype kind;
	byte target, source, number, what, hops;
	bool head, old;
	byte status, i, j, n;
	byte out = me;
	byte in = (me + 2) % 3;

end:	do
	/* A word comes; what passes takes its place. */
	:: d_step { nempty(wire[in]) && nfull(wire[out]) ->
		wire[in]?kind, target, source, number, what, head, old, hops;
		if
		:: target == me && kind == PACKET ->
			decide(source, what, head);
			wire[out]!ECHO, source, me, number, status, false, false, 0
		:: target == me && kind == ECHO -> answered(me, number, what)
		:: target == me && kind == GRANT ->
			i = 0;
			do
			:: i < PACKETS && P(me, i) != WAITING -> i++
			:: else -> break
			od;
			if :: i < PACKETS -> P(me, i) = FILLED :: else fi
		:: target != me && source == me && kind == PACKET -> answered(me, number, ACCEPTED)
		:: target != me && source == me && kind != PACKET
		:: target != me && source != me ->
			assert(hops < HOPS);
			if
#ifndef MUTANT_SCRUB
			:: me == SCRUBBER && old
#endif
			:: else -> wire[out]!kind, target, source, number, what, head, old || me == SCRUBBER, hops + 1
			fi
		fi;
		kind = 0; target = 0; source = 0; number = 0; what = 0; hops = 0; head = false; old = false;
		status = 0; i = 0; j = 0; n = 0 }
	:: d_step { nempty(wire[in]) && losses > 0 ->
		losses--;
		wire[in]?_, _, _, _, _, _, _, _ }
	:: d_step { strays > 0 && nfull(wire[out]) ->
		strays--;
		wire[out]!PACKET, NOBODY, NOBODY, 0, 0, false, false, 0 }
	/* A source sends the first packet that may go. */
	:: d_step { me != TARGET && nfull(wire[out]) && (GO(me, 0) || GO(me, 1) || GO(me, 2)) ->
		i = (GO(me, 0) -> 0 : (GO(me, 1) -> 1 : 2));
		head = ((i < 1 || P(me, i - 1) == DONE) && (i < 2 || P(me, i - 2) == DONE));
		P(me, i) = SENT;
		place[me*SPACE + next[me]] = i;
		wire[out]!PACKET, TARGET, me, next[me], i, head, false, 0;
		next[me] = (next[me] + 1) % SPACE;
		head = false; i = 0 }
	:: d_step { me == TARGET && room < ROOM -> room++ }
	:: d_step { me == TARGET && nfull(wire[out]) && room > grants &&
		    ((older[0] && !granted[0]) || (older[1] && !granted[1])) ->
		i = (older[0] && !granted[0] -> 0 : 1);
		granted[i] = true;
		grants++;
		wire[out]!GRANT, i, me, 0, 0, false, false, 0;
		i = 0 }
	/* Time. */
	:: d_step { timeout && me != TARGET && COUNT(me) > 0 ->
		report(me);
		j = 0 }
	:: d_step { timeout && me != TARGET && COUNT(me) == 0 && !ENDED ->
		i = 0;
		do
		:: i < PACKETS ->
			if :: P(me, i) == WAITING -> P(me, i) = FILLED :: else fi;
			i++
		:: else -> break
		od;
		i = 0 }
	od
}

/* At the end each packet was accepted or reported. */
active proctype Judge()
{
	byte i;

end:	do
	:: d_step { ENDED ->
		i = 0;
		do
		:: i < 2*PACKETS -> assert(accepted[i] || reported[i]); i++
		:: else -> break
		od;
		i = 0 };
		break
	od
}

init {
	atomic {
#if SOURCES == 1
		byte i;
		do
		:: i < PACKETS -> P(1, i) = DONE; reported[PACKETS + i] = true; i++
		:: else -> break
		od;
#endif
		run Node(0); run Node(1); run Node(2)
	}
}
