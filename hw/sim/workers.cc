/* SPDX-License-Identifier: BSD-2-Clause */

#include "workers.h"

#include <algorithm>
#include <chrono>

namespace dibber {

namespace {

/* Sleep when the others have not come after this long: then they have no core. */
constexpr int spins = 2000;

constexpr unsigned timed_rounds = 32, keep_least = 4096, keep_most = 65536;

double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void wait_while(std::atomic<unsigned>& value, unsigned old)
{
    for (int i = 0; i < spins; i++) {
        if (value.load(std::memory_order_acquire) != old)
            return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    value.wait(old, std::memory_order_acquire);
}

} // namespace

Workers::Workers(unsigned items, unsigned threads, std::function<void(unsigned)> work)
    : items_(items), stride_(std::max(1u, std::min(items, threads))), work_(std::move(work)),
      taken_(items)
{
    for (unsigned n = 1; n < stride_; n++)
        threads_.emplace_back([this, n] { loop(n); });
}

Workers::~Workers()
{
    quit_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (auto& thread : threads_)
        thread.join();
}

void Workers::loop(unsigned thread)
{
    for (unsigned seen = 0;;) {
        wait_while(round_, seen);
        if (quit_)
            return;
        /* It may be several rounds later: the others have done them without this thread. */
        seen = round_.load(std::memory_order_acquire);
        work_in(seen, thread);
    }
}

/* An item is begun by the thread that moves its `taken_` from the round before to this one. In a
 * round that has ended all items have moved, so a late thread finds nothing. */
void Workers::work_in(unsigned round, unsigned thread)
{
    for (unsigned turn = 0; turn < stride_; turn++) {
        for (unsigned n = (thread + turn) % stride_; n < items_; n += stride_) {
            unsigned before = round - 1;
            if (!taken_[n].compare_exchange_strong(before, round, std::memory_order_acq_rel))
                continue;
            work_(n);
            if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
                left_.notify_one();
        }
    }
}

void Workers::run_alone()
{
    for (unsigned n = 0; n < items_; n++)
        work_(n);
}

void Workers::run_together()
{
    left_.store(items_, std::memory_order_relaxed);
    unsigned round = round_.fetch_add(1, std::memory_order_acq_rel) + 1;
    round_.notify_all();
    work_in(round, 0);
    for (unsigned left; (left = left_.load(std::memory_order_acquire)) != 0;)
        wait_while(left_, left);
}

void Workers::run()
{
    if (threads_.empty())
        return run_alone();
    if (phase_ == Phase::keep) {
        together_ ? run_together() : run_alone();
    } else {
        double start = seconds();
        if (phase_ == Phase::together)
            run_together();
        else
            run_alone();
        (phase_ == Phase::together ? together_seconds_ : alone_seconds_) += seconds() - start;
    }
    rounds_++;
    next_phase();
}

void Workers::next_phase()
{
    switch (phase_) {
    case Phase::alone:
        if (rounds_ < timed_rounds)
            return;
        phase_ = Phase::together;
        break;
    case Phase::together:
        /* Two slow meetings need not be followed by thirty more. */
        if (rounds_ < timed_rounds && together_seconds_ < 2 * alone_seconds_)
            return;
        phase_ = Phase::keep;
        keep_ = together_ == (together_seconds_ < alone_seconds_) ? std::min(2 * keep_, keep_most)
                                                                  : keep_least;
        keep_ = std::max(keep_, keep_least);
        together_ = together_seconds_ < alone_seconds_;
        break;
    case Phase::keep:
        if (rounds_ < keep_)
            return;
        phase_ = Phase::alone;
        alone_seconds_ = together_seconds_ = 0;
        break;
    }
    rounds_ = 0;
}

} // namespace dibber
