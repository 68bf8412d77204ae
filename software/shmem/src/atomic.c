/* Atomics, executed by the card that owns the memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "shmem.h"

/* An operand of 4 bytes is below 2^32 for libdibber. */
static uint64_t cut(uint64_t value, size_t size)
{
	return size == 4 ? value & UINT32_MAX : value;
}

uint64_t dibber_shmem_atomic(void *dest, enum dibber_shmem_atomic kind, uint64_t compare,
			     uint64_t value, size_t size, int other)
{
	static const uint32_t opcodes[] = {
		[DIBBER_SHMEM_FETCH] = DIBBER_OPCODE_FETCH_ADD,
		[DIBBER_SHMEM_SET] = DIBBER_OPCODE_SWAP,
		[DIBBER_SHMEM_SWAP] = DIBBER_OPCODE_SWAP,
		[DIBBER_SHMEM_ADD] = DIBBER_OPCODE_FETCH_ADD,
		[DIBBER_SHMEM_COMPARE_SWAP] = DIBBER_OPCODE_COMPARE_SWAP,
	};
	uint64_t offset = offset_of(dest, size, other, "an atomic");
	struct dib_atomic atomic = {
		.opcode = opcodes[kind],
		.size = (uint32_t)size,
		.key = pe.seats[other].key,
		.offset = offset,
		.operand = cut(value, size),
		.compare = cut(compare, size),
	};
	struct operation operation = { 0 };
	struct dib_delivery delivery;

	if (other == (int)pe.number && kind == DIBBER_SHMEM_FETCH)
		return size == 4 ? *(volatile uint32_t *)dest : *(volatile uint64_t *)dest;
	if (other == (int)pe.number)
		fail("an atomic on memory of the own PE: the card's atomics are not atomic against "
		     "its CPU; keep the word at another PE");
	delivery = delivery_to(other, &operation, 0);
	issue(dib_atomic(pe.endpoint, &delivery, &atomic), "an atomic");
	wait_for(&operation);
	return operation.value;
}
