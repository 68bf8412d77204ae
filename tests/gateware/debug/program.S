/* What is debugged: a loop that counts in t0 and in memory, and calls a function each time round. */

/* SPDX-License-Identifier: BSD-2-Clause */

	.globl start, loop, called, back, word, handler
start:
	la   t1, handler
	csrw mtvec, t1
	la   t2, word
	li   t0, 0
loop:
	addi t0, t0, 1
	jal  ra, called
back:
	sw   t0, 0(t2)
	lw   t3, 4(t2)          /* the debugger changes it */
	j    loop
	.balign 64
called:
	addi a0, t0, 100
	add  a1, a0, a0
	ret
	.balign 64
handler:
	csrr s1, mcause
	j    handler
	.balign 64
word:
	.word 0, 0x11223344
