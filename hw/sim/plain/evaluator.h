/* Verilator's own evaluation of a card: all of its logic, in each cycle. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstddef>
#include <vector>

#include "Vdibber_card.h"

class Evaluator {
public:
    explicit Evaluator(Vdibber_card& model) : model_(model) {}

    /* Let the logic follow the inputs. */
    void settle()
    {
        model_.sys_clk = 0;
        model_.eval();
    }

    /* The rising edge. */
    void clock()
    {
        model_.sys_clk = 1;
        model_.eval();
    }

    /* A memory was written from outside. */
    void touch() {}

    struct Variable {
        const char* name;
        const void* at;
        size_t bytes;
    };

    /* Only the step that computes what changed has a table of them. */
    std::vector<Variable> variables() const { return {}; }

private:
    Vdibber_card& model_;
};
