/* gates-run GATES: a line of standard input has a hexadecimal number for each input, in the order
 * of the list; for each line, and then the rising edge, one with the outputs is printed. Ports have
 * up to 64 bits. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <iostream>
#include <sstream>

#include "gates.h"

int main(int argc, char** argv)
try {
    if (argc != 2)
        throw std::runtime_error("usage: gates-run GATES");
    dibber::Gates gates(argv[1]);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        words >> std::hex;
        for (auto& [name, port] : gates.inputs()) {
            uint64_t value = 0;
            words >> value;
            gates.set(port, &value);
        }
        gates.settle();
        for (auto& [name, port] : gates.outputs()) {
            uint64_t value = 0;
            gates.get(port, &value);
            std::printf("%llx ", (unsigned long long)value);
        }
        std::puts("");
        gates.clock();
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "gates-run: %s\n", error.what());
    return 1;
}
