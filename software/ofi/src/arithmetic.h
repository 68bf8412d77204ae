/* The arithmetic of atomics on a process's own memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_ARITHMETIC_H
#define DFI_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>

#include "provider.h"

/* Bytes of an element, or 0 if atomics do not have this type. */
size_t dfi_element_bytes(enum fi_datatype type);

/* Whether `op` exists for `type`. */
bool dfi_arithmetic_exists(enum fi_datatype type, enum fi_op op);

/* target[i] = op(target[i], operand[i], compare[i]) for `count` elements; result[i] is what was
 * there before. `operand` may be NULL for FI_ATOMIC_READ, `compare` for operations that do not
 * compare. All are aligned to their type. */
void dfi_arithmetic(enum fi_datatype type, enum fi_op op, size_t count, void *target,
		    const void *operand, const void *compare, void *result);

#endif
