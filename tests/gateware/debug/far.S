/* Code in two lines that had one place in a cache of 4 KiB; t2 is how long it took from one to the other and back. */

/* SPDX-License-Identifier: BSD-2-Clause */

	.globl start
start:
	li   t0, 100
loop:
	csrr t1, mcycle
	jal  ra, far
	csrr t2, mcycle
	sub  t2, t2, t1
	addi t0, t0, -1
	bnez t0, loop
	j    .
	.org 4096
far:
	ret
