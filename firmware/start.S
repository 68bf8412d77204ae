/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Reset and trap. The reset address is 0, the first word of the image. */

#include "asm_offsets.h"

	.section .start, "ax"
	.global _start
_start:
	.option	push
	.option	norelax
	la	gp, __global_pointer$
	.option	pop
	la	sp, stack_top
	la	t0, trap_entry
	csrw	mtvec, t0
	csrw	mie, zero
	la	t0, bss_start
	la	t1, bss_end
1:	sw	zero, 0(t0)
	addi	t0, t0, 4
	bltu	t0, t1, 1b
	la	t0, mcp_shared
	li	t1, SHARED_BYTES
	add	t1, t0, t1
2:	sw	zero, 0(t0)
	addi	t0, t0, 4
	bltu	t0, t1, 2b
	call	main

/*
 * An exception is a fault of this program or of its image: leave what is needed to find it, tell
 * the host, and stop. The stack is not touched; it may be what is wrong. mtvec needs 4-byte
 * alignment.
 */
	.balign	4
trap_entry:
	la	t0, mcp_shared + TRAP_OFFSET
	csrr	t1, mcause
	sw	t1, TRAP_CAUSE(t0)
	csrr	t1, mepc
	sw	t1, TRAP_PC(t0)
	csrr	t1, mtval
	sw	t1, TRAP_VALUE(t0)
	sw	sp, TRAP_SP(t0)
	sw	ra, TRAP_RA(t0)
	li	t0, STATE_REGISTER
	li	t1, STATE_TRAP
	sw	t1, 0(t0)
3:	j	3b
