/* A flow whose ends begin anew at any moment: the target's card is reset or gets another program, the source's program
 * is loaded again, or the source's card loses power and counts its incarnations from 0.
 *
 * The source has MESSAGES transfers of one packet each. Packet and question share a wire that keeps the order. So do
 * acknowledgements, refusals and answers on the way back. What is on a wire stays there when an end begins anew.
 * The cable loses LOSSES times what it likes. A refusal is told twice, as the gateware does.
 *
 *   target    holds nothing after it began anew. It takes up a flow at PSN 0, and only if it was asked in this life.
 *             Until then it refuses each packet by its incarnation and PSN
 *   source    asks first when it is not sure. A refusal counts for the incarnation and for what is under way. From
 *             then on the flow is silent until the program resets it. What is before the refused packet, or before
 *             `doubt`, ends as restarted. The rest goes again
 *
 * Checked in every state: no transfer is executed twice; one that ends as OK was executed; a timer has to help no more
 * than once for each loss and restart; something can always happen until all have ended.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MESSAGES
#define MESSAGES    4
#endif
#ifndef WINDOW
#define WINDOW      3
#endif
#ifndef LOSSES
#define LOSSES      1
#endif
#ifndef TARGETS
#define TARGETS     2               /* times that the target begins anew */
#endif
#ifndef SOURCES
#define SOURCES     1               /* the same of the source */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS    1               /* of the source's timer, without need */
#endif

mtype = { PACKET, QUESTION, ACK, NAK, GONE, ANSWER };

chan there = [WINDOW] of { mtype, byte, byte, byte };   /* incarnation, PSN, transfer; or token */
chan back  = [2] of { mtype, byte, byte };              /* incarnation, PSN; an answer: held, token */

byte losses   = LOSSES;
byte targets  = TARGETS;
byte sources  = SOURCES;
byte timeouts = TIMEOUTS;
byte stalls   = 0;
byte executed[MESSAGES];
byte done     = 0;                  /* transfers that have ended */

proctype Source()
{
	byte number = 1, first = 0;     /* incarnation on the wire, transfer of PSN 0 */
	byte acked = 0, next = 0, ever = 0, doubt = 0;
	byte token = 0, refused = 0, i, a, b;
	bool sure = false, waits = false, silent = false;

	do
	/* Question and packets. */
	:: d_step { !sure && !waits && !silent && first < MESSAGES && nfull(there) ->
		token++; waits = true;
		there!QUESTION, 0, token, 0 }
	:: d_step { !sure && !waits && !silent && first < MESSAGES && losses > 0 ->
		losses--; token++; waits = true }
	:: d_step { sure && !silent && next < acked + WINDOW && first + next < MESSAGES && nfull(there) ->
		there!PACKET, number, next, first + next;
		next++;
		if :: next > ever -> ever = next :: else fi }
	:: d_step { sure && !silent && next < acked + WINDOW && first + next < MESSAGES && losses > 0 ->
		losses--;
		next++;
		if :: next > ever -> ever = next :: else fi }
	/* What comes back. */
	:: d_step { back?ANSWER, a, b ->
		if
		:: waits && b == token && !sure -> number = a + 1; sure = true; waits = false
		:: else
		fi; a = 0; b = 0 }
	:: d_step { back?ACK, a, b ->
		if
		:: sure && !silent && a == number && b >= acked && b <= ever ->
			do
			:: acked < b -> assert(executed[first + acked] == 1); acked++; done++
			:: else -> break
			od;
			if :: next < acked -> next = acked :: else fi
		:: else
		fi; a = 0; b = 0 }
	:: d_step { back?NAK, a, b ->
		if
		:: sure && !silent && a == number && b >= acked && b <= ever ->
			do
			:: acked < b -> assert(executed[first + acked] == 1); acked++; done++
			:: else -> break
			od;
			next = acked; doubt = ever
		:: else
		fi; a = 0; b = 0 }
	:: d_step { back?GONE, a, b ->
		if
		:: sure && !silent && a == number && b >= acked && b < ever ->
			silent = true; refused = b
		:: else
		fi; a = 0; b = 0 }
	/* The program resets the flow. */
	:: d_step { silent ->
		i = refused;
#ifndef MUTANT_DOUBT
		if :: doubt > i -> i = doubt :: else fi;
#endif
		done = done + i - acked;
		first = first + i;
		acked = 0; next = 0; ever = 0; doubt = 0; refused = 0; i = 0;
		number++;
		silent = false; waits = false;
#ifndef MUTANT_SURE
		sure = false;
#endif
		assert(number < 3*(TARGETS + SOURCES) + 4) }
	/* The timer: without need, and when nothing else can happen. */
	:: d_step { timeouts > 0 && !silent && (acked < next || waits) ->
		timeouts--; next = acked; doubt = ever; waits = false }
	:: d_step { timeout && first + acked < MESSAGES ->
		stalls++;
		assert(stalls <= LOSSES + TARGETS + SOURCES);
		next = acked; doubt = ever; waits = false }
	/* It begins anew: what had left is nobody's any more. A program that is loaded, and a card that has power again. */
	:: d_step { sources > 0 && first < MESSAGES ->
		sources--;
		done = done + ever - acked; first = first + ever;
		acked = 0; next = 0; ever = 0; doubt = 0; refused = 0;
		number++;
		sure = sure && !silent; silent = false; waits = false }
	:: d_step { sources > 0 && first < MESSAGES ->
		sources--;
		done = done + ever - acked; first = first + ever;
		acked = 0; next = 0; ever = 0; doubt = 0; refused = 0;
		number = 1; sure = false; silent = false; waits = false }
	:: done == MESSAGES -> break
	od;
end:	do
	:: back?_, _, _
	od
}

proctype Target()
{
	byte held = 0, expected = 0, a, b, c;
	bool known = false, opened = false;
	bool owe = false, nak = false, told = false;
	byte answers = 0;               /* token of a question that is to be answered */
	byte gone = 0, number = 0, psn = 0;     /* how often a refusal is still to be told, and which */

end:	do
	:: d_step { there?QUESTION, a, b, c ->
		opened = true; answers = b;
		a = 0; b = 0; c = 0 }
	:: d_step { there?PACKET, a, b, c ->
		if
#ifdef MUTANT_OPEN
		:: false -> skip
#else
		:: !known && !opened ->
			if :: gone == 0 -> gone = 2; number = a; psn = b :: else fi
#endif
		:: else ->
			if
			:: b == 0 && (!known || a > held) ->
				known = true; held = a; expected = 0; told = false
			:: else
			fi;
			if
			:: known && a == held && b == expected ->
				executed[c]++;
				assert(executed[c] == 1);
				expected++; owe = true; nak = false; told = false
			:: known && a == held && b < expected -> owe = true
			:: known && a == held && b > expected && !told -> owe = true; nak = true; told = true
			:: else
			fi
		fi;
		a = 0; b = 0; c = 0 }
	:: d_step { gone > 0 && nfull(back) -> back!GONE, number, psn; gone-- }
	:: d_step { gone > 0 && losses > 0 -> losses--; gone-- }
	/* Refusals go before all else: the second telling is not to find the next incarnation, which may have that number. */
#ifdef MUTANT_ORDER
#define FIRST	true
#else
#define FIRST	(gone == 0)
#endif
	:: d_step { owe && FIRST && nfull(back) ->
		if :: nak -> back!NAK, held, expected :: else -> back!ACK, held, expected fi;
		owe = false; nak = false }
	:: d_step { owe && losses > 0 -> losses--; owe = false; nak = false }
	:: d_step { answers > 0 && FIRST && nfull(back) -> back!ANSWER, held, answers; answers = 0 }
	:: d_step { answers > 0 && losses > 0 -> losses--; answers = 0 }
	/* It begins anew. What it was about to tell is forgotten, or not. */
	:: d_step { targets > 0 ->
		targets--;
		known = false; opened = false; owe = false; nak = false; told = false; answers = 0; gone = 0; held = 0; expected = 0 }
	:: d_step { targets > 0 ->
		targets--;
		known = false; opened = false; told = false }
	od
}

init {
	atomic { run Source(); run Target() }
}
