/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The generated interface header names the types of C's <stdint.h>, which the kernel has here. */
#include <linux/types.h>
