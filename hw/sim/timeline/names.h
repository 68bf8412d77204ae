/* Names of numbers of the interface, for people. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>

namespace dibber {

/* Of enum call: the library's function; of 0: instructions of the program. */
const char* call_name(uint32_t call);

/* Of enum opcode, and of enum trace. */
const char* opcode_name(uint32_t opcode);
const char* trace_name(uint32_t event);

} // namespace dibber
