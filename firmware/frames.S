/* Begins and ends of functions that have to keep registers, shared by all of them. gcc's option
 * -msave-restore makes calls of these instead of the same stores and loads in each function. The
 * places of the registers are those of the RISC-V ABI: ra at the top, below it s0, s1 and so on.
 * libgcc has the same functions, but gcc of Debian 12 finds none for rv32im with Zicsr.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

	.macro	function name:vararg
	.irp	each, \name
	.globl	\each
	.type	\each, @function
\each:
	.endr
	.endm

/* Called by `jal t0`: keep ra and the first `count` of s0 to s11, in a frame of `bytes`. */
	.macro	keep bytes, count
	addi	sp, sp, -\bytes
	sw	ra, \bytes - 4(sp)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	.if	\n < \count
	sw	s\n, \bytes - 8 - 4 * \n(sp)
	.endif
	.endr
	jr	t0
	.endm

	.section .text.save_12, "ax"
	function __riscv_save_12
	keep	64, 12

	.section .text.save_8, "ax"
	function __riscv_save_11, __riscv_save_10, __riscv_save_9, __riscv_save_8
	keep	48, 11

	.section .text.save_4, "ax"
	function __riscv_save_7, __riscv_save_6, __riscv_save_5, __riscv_save_4
	keep	32, 7

	.section .text.save_0, "ax"
	function __riscv_save_3, __riscv_save_2, __riscv_save_1, __riscv_save_0
	keep	16, 3

/* Jumped to: get the registers back, and return from the function that kept them. */
	.section .text.restore, "ax"
	function __riscv_restore_12
	lw	s11, 12(sp)
	addi	sp, sp, 16
	function __riscv_restore_11, __riscv_restore_10, __riscv_restore_9, __riscv_restore_8
	lw	s10, 0(sp)
	lw	s9, 4(sp)
	lw	s8, 8(sp)
	lw	s7, 12(sp)
	addi	sp, sp, 16
	function __riscv_restore_7, __riscv_restore_6, __riscv_restore_5, __riscv_restore_4
	lw	s6, 0(sp)
	lw	s5, 4(sp)
	lw	s4, 8(sp)
	lw	s3, 12(sp)
	addi	sp, sp, 16
	function __riscv_restore_3, __riscv_restore_2, __riscv_restore_1, __riscv_restore_0
	lw	s2, 0(sp)
	lw	s1, 4(sp)
	lw	s0, 8(sp)
	lw	ra, 12(sp)
	addi	sp, sp, 16
	ret
