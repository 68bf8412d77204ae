/**
 * Dibber's OpenSHMEM: a part of OpenSHMEM 1.5 over libdibber, without MPI.
 *
 * Each shmem_iput(), shmem_iget(), shmem_ibput() and shmem_ibget() of any type is one strided
 * command of the card, whatever the number of elements.
 *
 * What is here
 *	shmem_init, finalize, my_pe, n_pes, global_exit, malloc, calloc, align, free, ptr,
 *	put, get, p, g, iput, iget and put_nbi, get_nbi for all standard RMA types, putmem, getmem
 *	and their _nbi forms, quiet, fence, barrier_all, sync_all, wait_until and test, and the
 *	atomics fetch, set, swap, compare_swap, fetch_add, add, fetch_inc and inc for the standard
 *	AMO types. shmem_ibput and shmem_ibget are those of OpenSHMEM 1.6.
 *
 * What is not here
 *	Contexts, teams, threads, collectives other than the barrier, locks, bitwise atomics,
 *	signals, forms with the size in the name, C11 generic names, and Fortran. Symmetric memory
 *	is what shmem_malloc() returns; global and static variables are not symmetric.
 *
 * PEs
 *	PE n is the process that has the n-th card of FI_DIBBER_CARD (URIs with commas between).
 *	DIBBER_PE and DIBBER_PES tell a process its number and how many there are, and
 *	DIBBER_MEETING where they meet, as dib_exchange_listen() takes it ("file:PATH" on one host,
 *	"HOST:PORT"). `dibber run -n N PROGRAM` sets all of them. Under Open MPI's launcher the
 *	first two are OMPI_COMM_WORLD_RANK and _SIZE. A card serves one process.
 *
 * Memory
 *	The symmetric heap has SHMEM_SYMMETRIC_SIZE bytes (default 1 MiB; K, M or G may follow).
 *	Calls of shmem_malloc() are the same on all PEs, so that an address here and the object
 * there have the same distance from the heap's begin. Local memory of a transfer may be any. Memory
 *	outside the heap is registered for the call, which takes some 40 us; up to 40 bytes of a
 *	put travel inside the command.
 *
 * Completion
 *	put, iput and ibput return when the source may be changed; here the bytes are then at the
 *	target, too. p and the _nbi forms return at once. shmem_quiet() waits for all.
 *
 * Own PE
 *	Transfers to the own PE are copies by the CPU. Atomics on the own PE's memory are refused,
 *	because the card's atomics are not atomic against its CPU: keep a counter at a PE that does
 *	not update it itself. shmem_atomic_fetch() on the own PE reads it.
 *
 * Errors
 *	OpenSHMEM's calls return no errors. A mistake, a lost card or a lost PE ends the program
 * with its reason on stderr and exit code 1. All calls belong to the thread of shmem_init().
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_SHMEM_H
#define DIBBER_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Comparisons of wait_until and test. */
enum {
	SHMEM_CMP_EQ,
	SHMEM_CMP_NE,
	SHMEM_CMP_GT,
	SHMEM_CMP_GE,
	SHMEM_CMP_LT,
	SHMEM_CMP_LE,
};

void shmem_init(void);
void shmem_finalize(void);
void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);

/* All PEs call these with the same arguments; each ends with a barrier. NULL without room. */
void *shmem_malloc(size_t size);
void *shmem_calloc(size_t count, size_t size);
void *shmem_align(size_t alignment, size_t size);
void shmem_free(void *memory);
/* `dest` itself on the own PE, else NULL. */
void *shmem_ptr(const void *dest, int pe);

void shmem_putmem(void *dest, const void *source, size_t bytes, int pe);
void shmem_getmem(void *dest, const void *source, size_t bytes, int pe);
void shmem_putmem_nbi(void *dest, const void *source, size_t bytes, int pe);
void shmem_getmem_nbi(void *dest, const void *source, size_t bytes, int pe);

void shmem_quiet(void);
void shmem_fence(void);
void shmem_barrier_all(void);
void shmem_sync_all(void);

/* Elements of any size: strides `dst` and `sst` in elements, as in iput. A block of ibput has
 * `bsize` elements, and the strides are from block to block. `size` is that of an element. */
void dibber_shmem_iput(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
		       size_t nblocks, size_t size, int pe);
void dibber_shmem_iget(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
		       size_t nblocks, size_t size, int pe);

/* The standard RMA types (OpenSHMEM 1.5, table 5). */
#define DIBBER_SHMEM_RMA_TYPES(X)        \
	X(float, float)                  \
	X(double, double)                \
	X(longdouble, long double)       \
	X(char, char)                    \
	X(schar, signed char)            \
	X(short, short)                  \
	X(int, int)                      \
	X(long, long)                    \
	X(longlong, long long)           \
	X(uchar, unsigned char)          \
	X(ushort, unsigned short)        \
	X(uint, unsigned int)            \
	X(ulong, unsigned long)          \
	X(ulonglong, unsigned long long) \
	X(int8, int8_t)                  \
	X(int16, int16_t)                \
	X(int32, int32_t)                \
	X(int64, int64_t)                \
	X(uint8, uint8_t)                \
	X(uint16, uint16_t)              \
	X(uint32, uint32_t)              \
	X(uint64, uint64_t)              \
	X(size, size_t)                  \
	X(ptrdiff, ptrdiff_t)

#define DIBBER_SHMEM_RMA(NAME, TYPE)                                                             \
	static inline void shmem_##NAME##_put(TYPE *dest, const TYPE *source, size_t nelems,     \
					      int pe)                                            \
	{                                                                                        \
		shmem_putmem(dest, source, nelems * sizeof(TYPE), pe);                           \
	}                                                                                        \
	static inline void shmem_##NAME##_get(TYPE *dest, const TYPE *source, size_t nelems,     \
					      int pe)                                            \
	{                                                                                        \
		shmem_getmem(dest, source, nelems * sizeof(TYPE), pe);                           \
	}                                                                                        \
	static inline void shmem_##NAME##_put_nbi(TYPE *dest, const TYPE *source, size_t nelems, \
						  int pe)                                        \
	{                                                                                        \
		shmem_putmem_nbi(dest, source, nelems * sizeof(TYPE), pe);                       \
	}                                                                                        \
	static inline void shmem_##NAME##_get_nbi(TYPE *dest, const TYPE *source, size_t nelems, \
						  int pe)                                        \
	{                                                                                        \
		shmem_getmem_nbi(dest, source, nelems * sizeof(TYPE), pe);                       \
	}                                                                                        \
	static inline void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe)                      \
	{                                                                                        \
		shmem_putmem_nbi(dest, &value, sizeof(TYPE), pe);                                \
	}                                                                                        \
	static inline TYPE shmem_##NAME##_g(const TYPE *source, int pe)                          \
	{                                                                                        \
		TYPE value;                                                                      \
		shmem_getmem(&value, source, sizeof(TYPE), pe);                                  \
		return value;                                                                    \
	}                                                                                        \
	static inline void shmem_##NAME##_iput(TYPE *dest, const TYPE *source, ptrdiff_t dst,    \
					       ptrdiff_t sst, size_t nelems, int pe)             \
	{                                                                                        \
		dibber_shmem_iput(dest, source, dst, sst, 1, nelems, sizeof(TYPE), pe);          \
	}                                                                                        \
	static inline void shmem_##NAME##_iget(TYPE *dest, const TYPE *source, ptrdiff_t dst,    \
					       ptrdiff_t sst, size_t nelems, int pe)             \
	{                                                                                        \
		dibber_shmem_iget(dest, source, dst, sst, 1, nelems, sizeof(TYPE), pe);          \
	}                                                                                        \
	static inline void shmem_##NAME##_ibput(TYPE *dest, const TYPE *source, ptrdiff_t dst,   \
						ptrdiff_t sst, size_t bsize, size_t nblocks,     \
						int pe)                                          \
	{                                                                                        \
		dibber_shmem_iput(dest, source, dst, sst, bsize, nblocks, sizeof(TYPE), pe);     \
	}                                                                                        \
	static inline void shmem_##NAME##_ibget(TYPE *dest, const TYPE *source, ptrdiff_t dst,   \
						ptrdiff_t sst, size_t bsize, size_t nblocks,     \
						int pe)                                          \
	{                                                                                        \
		dibber_shmem_iget(dest, source, dst, sst, bsize, nblocks, sizeof(TYPE), pe);     \
	}

DIBBER_SHMEM_RMA_TYPES(DIBBER_SHMEM_RMA)

/* Atomics on 4 or 8 bytes: FETCH, SET, SWAP, ADD and COMPARE_SWAP; returns the former value. */
enum dibber_shmem_atomic {
	DIBBER_SHMEM_FETCH,
	DIBBER_SHMEM_SET,
	DIBBER_SHMEM_SWAP,
	DIBBER_SHMEM_ADD,
	DIBBER_SHMEM_COMPARE_SWAP,
};
uint64_t dibber_shmem_atomic(void *dest, enum dibber_shmem_atomic kind, uint64_t compare,
			     uint64_t value, size_t size, int pe);

/* Let what is under way go on, and wait a little if nothing has come. */
void dibber_shmem_progress(void);

/* Seconds of simulated time, or of the system's clock on hardware. */
double dibber_shmem_seconds(void);

/* The standard AMO types (table 6), which are also those of wait_until (table 11). */
#define DIBBER_SHMEM_AMO_TYPES(X)        \
	X(int, int)                      \
	X(long, long)                    \
	X(longlong, long long)           \
	X(uint, unsigned int)            \
	X(ulong, unsigned long)          \
	X(ulonglong, unsigned long long) \
	X(int32, int32_t)                \
	X(int64, int64_t)                \
	X(uint32, uint32_t)              \
	X(uint64, uint64_t)              \
	X(size, size_t)                  \
	X(ptrdiff, ptrdiff_t)

#define DIBBER_SHMEM_AMO(NAME, TYPE)                                                               \
	static inline TYPE shmem_##NAME##_atomic_fetch(const TYPE *source, int pe)                 \
	{                                                                                          \
		return (TYPE)dibber_shmem_atomic((void *)(uintptr_t)source, DIBBER_SHMEM_FETCH, 0, \
						 0, sizeof(TYPE), pe);                             \
	}                                                                                          \
	static inline void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe)               \
	{                                                                                          \
		dibber_shmem_atomic(dest, DIBBER_SHMEM_SET, 0, (uint64_t)value, sizeof(TYPE), pe); \
	}                                                                                          \
	static inline TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe)              \
	{                                                                                          \
		return (TYPE)dibber_shmem_atomic(dest, DIBBER_SHMEM_SWAP, 0, (uint64_t)value,      \
						 sizeof(TYPE), pe);                                \
	}                                                                                          \
	static inline TYPE shmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value,   \
							      int pe)                              \
	{                                                                                          \
		return (TYPE)dibber_shmem_atomic(dest, DIBBER_SHMEM_COMPARE_SWAP, (uint64_t)cond,  \
						 (uint64_t)value, sizeof(TYPE), pe);               \
	}                                                                                          \
	static inline TYPE shmem_##NAME##_atomic_fetch_add(TYPE *dest, TYPE value, int pe)         \
	{                                                                                          \
		return (TYPE)dibber_shmem_atomic(dest, DIBBER_SHMEM_ADD, 0, (uint64_t)value,       \
						 sizeof(TYPE), pe);                                \
	}                                                                                          \
	static inline void shmem_##NAME##_atomic_add(TYPE *dest, TYPE value, int pe)               \
	{                                                                                          \
		shmem_##NAME##_atomic_fetch_add(dest, value, pe);                                  \
	}                                                                                          \
	static inline TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe)                     \
	{                                                                                          \
		return shmem_##NAME##_atomic_fetch_add(dest, 1, pe);                               \
	}                                                                                          \
	static inline void shmem_##NAME##_atomic_inc(TYPE *dest, int pe)                           \
	{                                                                                          \
		shmem_##NAME##_atomic_fetch_add(dest, 1, pe);                                      \
	}                                                                                          \
	static inline int shmem_##NAME##_test(TYPE *ivar, int cmp, TYPE value)                     \
	{                                                                                          \
		TYPE now = *(volatile TYPE *)ivar;                                                 \
		switch (cmp) {                                                                     \
		case SHMEM_CMP_EQ:                                                                 \
			return now == value;                                                       \
		case SHMEM_CMP_NE:                                                                 \
			return now != value;                                                       \
		case SHMEM_CMP_GT:                                                                 \
			return now > value;                                                        \
		case SHMEM_CMP_GE:                                                                 \
			return now >= value;                                                       \
		case SHMEM_CMP_LT:                                                                 \
			return now < value;                                                        \
		default:                                                                           \
			return now <= value;                                                       \
		}                                                                                  \
	}                                                                                          \
	static inline void shmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE value)              \
	{                                                                                          \
		while (!shmem_##NAME##_test(ivar, cmp, value))                                     \
			dibber_shmem_progress();                                                   \
	}

DIBBER_SHMEM_AMO_TYPES(DIBBER_SHMEM_AMO)

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
