/* The arithmetic of atomics on a process's own memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdint.h>

#include "arithmetic.h"

size_t dfi_element_bytes(enum fi_datatype type)
{
	switch (type) {
	case FI_INT8:
	case FI_UINT8:
		return 1;
	case FI_INT16:
	case FI_UINT16:
		return 2;
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	case FI_INT64:
	case FI_UINT64:
	case FI_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

bool dfi_arithmetic_exists(enum fi_datatype type, enum fi_op op)
{
	if (!dfi_element_bytes(type) || op > FI_MSWAP)
		return false;
	if (type != FI_FLOAT && type != FI_DOUBLE)
		return true;
	return op != FI_BOR && op != FI_BAND && op != FI_BXOR && op != FI_MSWAP;
}

/* Operations that all types have. Sums and products wrap, because narrower than int they are cut to
 * the type, and of int and wider they are computed without a sign: U is T or its unsigned type. */
#define COMMON(T, U)                              \
	case FI_MIN:                              \
		return b < a ? b : a;             \
	case FI_MAX:                              \
		return b > a ? b : a;             \
	case FI_SUM:                              \
		return (T)((U)a + (U)b);          \
	case FI_PROD:                             \
		return (T)((U)a * (U)b);          \
	case FI_LOR:                              \
		return (T)(a != 0 || b != 0);     \
	case FI_LAND:                             \
		return (T)(a != 0 && b != 0);     \
	case FI_LXOR:                             \
		return (T)((a != 0) != (b != 0)); \
	case FI_ATOMIC_WRITE:                     \
		return b;                         \
	case FI_CSWAP:                            \
		return c == a ? b : a;            \
	case FI_CSWAP_NE:                         \
		return c != a ? b : a;            \
	case FI_CSWAP_LE:                         \
		return c <= a ? b : a;            \
	case FI_CSWAP_LT:                         \
		return c < a ? b : a;             \
	case FI_CSWAP_GE:                         \
		return c >= a ? b : a;            \
	case FI_CSWAP_GT:                         \
		return c > a ? b : a;

#define BITWISE(T)                 \
	case FI_BOR:               \
		return (T)(a | b); \
	case FI_BAND:              \
		return (T)(a & b); \
	case FI_BXOR:              \
		return (T)(a ^ b); \
	case FI_MSWAP:             \
		return (T)((b & c) | (a & ~c));

#define LOOP(NAME, T)                                                                              \
	static void NAME##_loop(enum fi_op op, size_t count, T *target, const T *operand,          \
				const T *compare, T *result)                                       \
	{                                                                                          \
		for (size_t i = 0; i < count; i++) {                                               \
			T former = target[i];                                                      \
                                                                                                   \
			if (op != FI_ATOMIC_READ)                                                  \
				target[i] =                                                        \
					NAME(op, former, operand[i], compare ? compare[i] : (T)0); \
			result[i] = former;                                                        \
		}                                                                                  \
	}

#define INTEGER(NAME, T, U)                         \
	static T NAME(enum fi_op op, T a, T b, T c) \
	{                                           \
		switch (op) {                       \
			COMMON(T, U)                \
			BITWISE(T)                  \
		default:                            \
			return a;                   \
		}                                   \
	}                                           \
	LOOP(NAME, T)

#define REAL(NAME, T)                               \
	static T NAME(enum fi_op op, T a, T b, T c) \
	{                                           \
		switch (op) {                       \
			COMMON(T, T)                \
		default:                            \
			return a;                   \
		}                                   \
	}                                           \
	LOOP(NAME, T)

INTEGER(int8, int8_t, uint32_t)
INTEGER(uint8, uint8_t, uint32_t)
INTEGER(int16, int16_t, uint32_t)
INTEGER(uint16, uint16_t, uint32_t)
INTEGER(int32, int32_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint64, uint64_t, uint64_t)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
REAL(single, float)
REAL(real, double)
#pragma GCC diagnostic pop

void dfi_arithmetic(enum fi_datatype type, enum fi_op op, size_t count, void *target,
		    const void *operand, const void *compare, void *result)
{
	switch (type) {
	case FI_INT8:
		return int8_loop(op, count, target, operand, compare, result);
	case FI_UINT8:
		return uint8_loop(op, count, target, operand, compare, result);
	case FI_INT16:
		return int16_loop(op, count, target, operand, compare, result);
	case FI_UINT16:
		return uint16_loop(op, count, target, operand, compare, result);
	case FI_INT32:
		return int32_loop(op, count, target, operand, compare, result);
	case FI_UINT32:
		return uint32_loop(op, count, target, operand, compare, result);
	case FI_INT64:
		return int64_loop(op, count, target, operand, compare, result);
	case FI_UINT64:
		return uint64_loop(op, count, target, operand, compare, result);
	case FI_FLOAT:
		return single_loop(op, count, target, operand, compare, result);
	case FI_DOUBLE:
		return real_loop(op, count, target, operand, compare, result);
	default:
		return;
	}
}
