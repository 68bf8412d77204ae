/* Reset and trap. The reset address is 0, the first word of the image. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "asm_offsets.h"

/* RISC-V Privileged ISA 20211203, 3.1.6 and 3.1.9. */
#define MSTATUS_MIE	(1 << 3)
#define MIE_TIMER	(1 << 7)

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
	li	t0, MIE_TIMER
	csrw	mie, t0
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
	la	t0, mcp_shared + SHARED_IMAGE
	la	t1, image_end		/* the image begins at 0 */
	sw	t1, 0(t0)
	csrsi	mstatus, MSTATUS_MIE
	call	main

/*
 * An exception is a fault of this program or of its image. The only interrupt is the watchdog's,
 * after an endless loop. Keep what is needed to find the fault and tell the host. Then let the
 * watchdog halt the engines, because no program answers them any more. No register is trusted,
 * not even sp and gp. mtvec needs 4-byte alignment.
 */
	.option	push
	.option	norelax
	.balign	4
trap_entry:
	csrw	mscratch, t0
	li	t0, SHARED_ADDRESS + TRAP_OFFSET
	.irp	n, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	sw	x\n, TRAP_X + 4 * \n(t0)
	.endr
	csrr	t1, mscratch
	sw	t1, TRAP_X + 4 * 5(t0)
	csrr	t1, mcause
	sw	t1, TRAP_CAUSE(t0)
	csrr	t1, mepc
	sw	t1, TRAP_PC(t0)
	csrr	t1, mtval
	sw	t1, TRAP_VALUE(t0)
	csrr	t1, mstatus
	sw	t1, TRAP_STATUS(t0)
	li	t2, REGISTERS
	lw	t1, REGISTER_CYCLES(t2)
	sw	t1, TRAP_CYCLES(t0)
	li	t1, STATE_TRAP
	sw	t1, REGISTER_STATE(t2)
	li	t1, 1
	sw	t1, REGISTER_WATCHDOG(t2)
3:	j	3b
	.option	pop
