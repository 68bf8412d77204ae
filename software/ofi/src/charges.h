/* What calls cost the CPU, in instructions, by kinds of calls: of the provider without libdibber at
 * the longest variant of the call, and of Open MPI 4.1.4 for such a call. tests/system/mpi_costs.py
 * counts them with callgrind. Whoever includes this file says what CHARGE is.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

/*     kind      provider, Open MPI */
CHARGE(SEND, 480, 330)	   /* fi_send, fi_tsend and their variants, up to the command */
CHARGE(LONG, 980, 20)	   /* more of a message that does not go inline: a buffer, or an offer */
CHARGE(RECEIVE, 360, 375)  /* fi_recv, fi_trecv */
CHARGE(TRANSFER, 655, 495) /* fi_write, fi_read */
CHARGE(ATOMIC, 1280, 1585) /* fi_atomic and its variants */
CHARGE(HOLD, 1100, 1330)   /* one side of a typed message of libdibber-pmpi.so */
CHARGE(MOVE, 785, 1310)	   /* a strided transfer of it, or a piece of a typed message */
CHARGE(LOOK, 185, 175)	   /* a read of a queue or counter that finds nothing */
CHARGE(GLANCE, 90, 175)	   /* the same, when it looks at nothing */
CHARGE(MESSAGE, 940, 0)	   /* a peer's message, taken from its ring and matched */
CHARGE(COMMAND, 310, 0)	   /* the end of a command */
CHARGE(ENTRY, 220, 245)	   /* a completion that the program reads */
