/* The command line of every program that links the simulator. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include "simulation.h"

namespace dibber {

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

extern const char* const usage;

/* Throws UsageError; `help` is set by --help. */
Options parse_options(int argc, char** argv, bool& help);

} // namespace dibber
