/* Threads that do one thing together, again and again, with as little ceremony as a meeting needs.
 *
 * A meeting takes microseconds when every thread has a core of its own, and milliseconds when the
 * machine is busy with other things. So now and then both ways, together and alone, are timed, and
 * the better is kept for a while. What is computed does not depend on it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace dibber {

class Workers {
public:
    /* run() calls `work(n)` for n = 0 … `items`-1, on at most `threads` threads, the caller's
     * included. */
    Workers(unsigned items, unsigned threads, std::function<void(unsigned)> work);
    ~Workers();

    void run();

private:
    enum class Phase { alone, together, keep };

    void loop(unsigned first);
    void run_alone();
    void run_together();
    void next_phase();

    const unsigned items_, stride_;
    std::function<void(unsigned)> work_;
    std::vector<std::thread> threads_;
    std::atomic<unsigned> round_ = 0, busy_ = 0;
    std::atomic<bool> quit_ = false;

    Phase phase_ = Phase::alone;
    bool together_ = false;
    unsigned rounds_ = 0, keep_ = 0;
    double alone_seconds_ = 0, together_seconds_ = 0;
};

} // namespace dibber
