/* SPDX-License-Identifier: BSD-2-Clause */

#include "clock.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "../timeline/timeline.h"

namespace dibber {

Clock::Clock(const Profile& profile, unsigned participants, const Time& now)
    : profile_(profile), expected_(participants), now_(now), started_(participants == 0)
{
}

void Clock::answer(const Participant& p, const Reply& reply, uint32_t error, bool woken) const
{
    dibber_clock_reply message = {};
    message.now = p.time - start_;
    message.woken = woken;
    message.error = error;
    message.cpu = p.cpu;
    message.free = free_clients_ > 0;
    reply(message);
}

void Clock::request(unsigned card, const dibber_clock_request& request, Reply reply)
{
    Key key(card, request.endpoint);
    auto refuse = [&](uint32_t error) {
        Participant nobody;
        nobody.time = now_;
        answer(nobody, reply, error);
    };
    if (request.endpoint >= DIBBER_ENDPOINTS)
        return refuse(EINVAL);
    auto found = participants_.find(key);
    if (request.op == DIBBER_CLOCK_OP_JOIN)
        return found == participants_.end() ? join(key, request.thread, reply) : refuse(EEXIST);
    if (found == participants_.end())
        return refuse(ENOTCONN);

    Participant& p = found->second;
    bool enters = request.op == DIBBER_CLOCK_OP_ENTER;
    bool in_place =
        enters ? p.state == State::left || p.state == State::paused : p.state == State::runs;
    if (request.op != DIBBER_CLOCK_OP_NOW && !in_place)
        return refuse(EBUSY);
    if (request.thread)
        give_to(request.thread, key);
    catch_up(p, request.thread != 0);
    if (request.thread)
        p.answered = p.time;
    switch (request.op) {
    case DIBBER_CLOCK_OP_CHARGE: {
        Time cost = profile_.cpu_time(request.call, request.count);
        if (cost == never)
            return refuse(EINVAL);
        if (timeline)
            timeline->card(card).call(request.endpoint, request.call, request.count, p.time,
                                      p.time + cost);
        p.time += cost;
        p.cpu += cost;
        return answer(p, reply);
    }
    case DIBBER_CLOCK_OP_WAIT:
        if (request.length && request.watch + (request.length - 1) < request.watch)
            return refuse(EINVAL);
        return wait(p, request, std::move(reply));
    case DIBBER_CLOCK_OP_LEAVE:
        if (request.count == 1) { /* for good: no other waits for it */
            answer(p, reply);
            participants_.erase(found);
            joined_ -= !started_;
            return settle_leavers();
        }
        p.state = request.count ? State::paused : State::left;
        answer(p, reply);
        return settle_leavers();
    case DIBBER_CLOCK_OP_ENTER:
        if (p.state == State::paused) {
            p.state = State::runs;
            p.time = std::max(p.time, now_);
            p.answered = p.time;
            return answer(p, reply);
        }
        p.state = State::enters;
        p.reply = std::move(reply);
        return settle_leavers();
    case DIBBER_CLOCK_OP_NOW:
        return answer(p, reply);
    }
    refuse(EINVAL);
}

void Clock::join(const Key& key, uint64_t thread, const Reply& reply)
{
    Participant& p = participants_[key];
    p.thread = thread;
    p.time = now_;
    seen_ = true;
    catch_up(p, true);
    p.answered = p.time;
    if (++joined_ + free_clients_ >= expected_ && !started_) {
        started_ = true;
        start_ = now_;
    }
    if (!started_)
        start_ = now_; /* time stands: the run will start here */
    answer(p, reply);
}

/* A participant in a call is evidently driven by its thread, so it does not follow. */
void Clock::give_to(uint64_t thread, const Key& key)
{
    Participant& p = participants_.at(key);
    uint64_t former = std::exchange(p.thread, thread);
    bool followed = std::exchange(p.follows, false);
    if (former == thread || former == 0 || key.second != 0)
        return;
    for (auto& [other_key, other] : participants_)
        if (other.thread == former && other_key.second == 0 && other.state == State::runs &&
            (other.follows || !followed)) {
            other.thread = thread;
            other.follows = true;
        }
}

/* Whether the thread of a participant is in one of these states with another of its participants.
 */
bool Clock::thread_is(const Participant& p, std::initializer_list<State> states) const
{
    if (p.thread == 0)
        return false;
    return std::any_of(participants_.begin(), participants_.end(), [&](auto& entry) {
        const Participant& other = entry.second;
        return &other != &p && other.thread == p.thread &&
               std::find(states.begin(), states.end(), other.state) != states.end();
    });
}

bool Clock::holds_time(const Participant& p) const
{
    return p.state == State::runs &&
           !thread_is(p, {State::waits, State::reads, State::left, State::enters, State::paused});
}

/* Bring a participant to the time of its thread. While the thread runs, now_ stands. */
void Clock::catch_up(Participant& p, bool answered)
{
    for (auto& [key, other] : participants_)
        if (&other != &p && p.thread && other.thread == p.thread)
            p.time = std::max({p.time, now_, answered ? other.answered : 0});
}

bool Clock::shares_thread() const
{
    for (auto& [key, p] : participants_)
        for (auto& [other_key, other] : participants_)
            if (p.thread && p.thread == other.thread && key.first != other_key.first)
                return true;
    return false;
}

/* Data that landed since time last stood cannot be missed, because time stood while the program
 * looked. */
void Clock::wait(Participant& p, const dibber_clock_request& request, Reply reply)
{
    p.state = State::waits;
    p.begun = p.time;
    p.watch = request.watch;
    p.length = request.length;
    p.woken = false;
    p.wake_at = request.deadline > never - p.time ? never : p.time + request.deadline;
    p.reply = std::move(reply);
}

void Clock::written(unsigned card, uint64_t address, uint64_t bytes)
{
    for (auto p = participants_.lower_bound({card, 0});
         p != participants_.end() && p->first.first == card; ++p) {
        Participant& waiter = p->second;
        if (waiter.state != State::waits || waiter.woken || waiter.length == 0)
            continue;
        if (address - waiter.watch < waiter.length || waiter.watch - address < bytes) {
            Time at = std::max(now_, waiter.time);
            if (at <= waiter.wake_at) {
                waiter.wake_at = at;
                waiter.woken = true;
            }
        }
    }
}

Time Clock::next_wake() const
{
    Time next = never;
    for (auto& [key, p] : participants_)
        if (p.state == State::waits)
            next = std::min(next, p.wake_at);
    return next;
}

void Clock::wake()
{
    for (auto& [key, p] : participants_)
        if (p.state == State::waits && p.wake_at <= now_) {
            if (timeline)
                timeline->card(key.first).waited(key.second, p.begun, now_, p.woken);
            p.state = State::runs;
            p.time = p.answered = now_;
            Reply reply = std::move(p.reply);
            return answer(p, reply, 0, p.woken);
        }
}

std::optional<unsigned> Clock::owner(unsigned card, std::optional<unsigned> endpoint) const
{
    if (endpoint && participants_.count({card, *endpoint}))
        return endpoint;
    std::optional<unsigned> first;
    for (auto p = participants_.lower_bound({card, 0});
         p != participants_.end() && p->first.first == card; ++p) {
        if (p->second.state == State::runs)
            return p->first.second;
        if (!first)
            first = p->first.second;
    }
    return first;
}

Time Clock::time_of(unsigned card, unsigned endpoint) const
{
    return std::max(now_, participants_.at({card, endpoint}).time);
}

void Clock::compute(unsigned card, unsigned endpoint, Time end)
{
    Participant& p = participants_.at({card, endpoint});
    Time begin = std::max(now_, p.time);
    if (end > begin) {
        p.cpu += end - begin;
        p.time = end;
    }
}

void Clock::begin_read(unsigned card, unsigned endpoint)
{
    Participant& p = participants_.at({card, endpoint});
    if (p.state == State::runs) {
        p.state = State::reads;
        p.begun = std::max(now_, p.time);
    }
}

void Clock::end_read(unsigned card, unsigned endpoint)
{
    auto p = participants_.find({card, endpoint});
    if (p != participants_.end() && p->second.state == State::reads) {
        p->second.state = State::runs;
        p->second.time = std::max(p->second.time, now_);
        p->second.answered = p->second.time;
        if (timeline)
            timeline->card(card).read_register(endpoint, p->second.begun, p->second.time);
    }
}

/* Time stops when the last participant has left. It goes on when all are back, or when a new one
 * has joined. A thread that has left with one participant is away with all. While a thread waits to
 * come back with one, it cannot bring the others back, so nothing waits for those. */
bool Clock::stopped() const
{
    bool someone_out = false, someone_in = free_clients_ > 0;
    for (auto& [key, p] : participants_) {
        bool away = p.state == State::left || p.state == State::enters || p.state == State::paused;
        someone_out |= away;
        someone_in |= !away && !(p.state == State::runs &&
                                 thread_is(p, {State::left, State::enters, State::paused}));
    }
    return someone_out && !someone_in;
}

void Clock::settle_leavers()
{
    for (auto& [key, p] : participants_)
        if (p.state == State::left && !thread_is(p, {State::enters}))
            return;
    for (auto& [key, p] : participants_)
        if (p.state == State::enters) {
            p.state = State::runs;
            p.time = std::max(p.time, now_);
            p.answered = p.time;
            Reply reply = std::move(p.reply);
            answer(p, reply);
        }
}

void Clock::disconnect(unsigned card)
{
    for (auto p = participants_.lower_bound({card, 0});
         p != participants_.end() && p->first.first == card;) {
        p = participants_.erase(p);
        joined_ -= !started_;
    }
    if (participants_.empty() && free_clients_ == 0) {
        /* The next participants start a run of their own. */
        joined_ = 0;
        started_ = expected_ == 0;
        return;
    }
    settle_leavers();
}

void Clock::free_client(bool comes)
{
    free_clients_ += comes ? 1 : -1;
    seen_ = true;
    if (joined_ + free_clients_ >= expected_ && !started_) {
        started_ = true;
        start_ = now_;
    }
}

bool Clock::may_run() const
{
    if (!started_ || stopped())
        return false;
    if (expected_ != 0 && participants_.empty() && free_clients_ == 0)
        return false;
    for (auto& [key, p] : participants_)
        if (holds_time(p))
            return false;
    return true;
}

/* "card0 endpoint 1 has left", or with several names "have left"; empty when no participant is
 * chosen. */
std::string Clock::names(const std::function<bool(const Participant&)>& chosen,
                         const char* verb) const
{
    std::string list;
    unsigned count = 0;
    for (auto& [key, p] : participants_)
        if (chosen(p)) {
            list += (count++ ? ", card" : "card") + std::to_string(key.first) + " endpoint " +
                    std::to_string(key.second);
        }
    bool has = std::string(verb) == "has";
    return list + (count == 0 ? ""
                   : has      ? (count == 1 ? " has" : " have")
                              : (count == 1 ? " runs" : " run"));
}

std::string Clock::missing() const
{
    if (std::none_of(participants_.begin(), participants_.end(),
                     [](auto& entry) { return entry.second.state == State::enters; }))
        return "";
    return names([](const Participant& p) { return p.state == State::left; }, "has") +
           " left the clock and not come back, and another participant waits for that";
}

std::string Clock::holder() const
{
    std::string running = names([this](const Participant& p) { return holds_time(p); }, "runs");
    if (!running.empty())
        return running + " outside the library";
    if (!started_)
        return std::to_string(joined_ + free_clients_) + " of " + std::to_string(expected_) +
               " participants have joined";
    if (stopped())
        return names(
                   [](const Participant& p) {
                       return p.state == State::left || p.state == State::paused;
                   },
                   "has") +
               " left the clock";
    return "nobody takes part";
}

} // namespace dibber
