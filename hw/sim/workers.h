/* Threads that do one thing together, again and again, with as little ceremony as a meeting needs.
 *
 * There may be many more items than threads. A thread begins with the items that it had in the
 * round before, because their data are in the cache of its core, and then takes what others have
 * not begun. So a thread that finds no core holds up one item at most.
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

    void loop(unsigned thread);
    void work_in(unsigned round, unsigned thread);
    void run_alone();
    void run_together();
    void next_phase();

    const unsigned items_, stride_;
    std::function<void(unsigned)> work_;
    std::vector<std::thread> threads_;
    std::vector<std::atomic<unsigned>> taken_; /* the last round in which an item was begun */
    std::atomic<unsigned> round_ = 0, left_ = 0;
    std::atomic<bool> quit_ = false;

    Phase phase_ = Phase::alone;
    bool together_ = false;
    unsigned rounds_ = 0, keep_ = 0;
    double alone_seconds_ = 0, together_seconds_ = 0;
};

} // namespace dibber
