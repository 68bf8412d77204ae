/* The participants in simulated time, and the state of each (the interface's CLOCK_REQUEST).
 *
 * A participant is an endpoint of a card. It *runs* while its program computes outside the library;
 * time then stands. Else it waits: for memory or a deadline, for a register read, or to come back
 * after leaving. Its own time is ahead of the host's by the charges of its calls.
 *
 * A thread may have several participants, those of two cards for example. Each request that waits
 * for its answer says which thread makes it, and is made at the latest time at which such a request
 * of this thread was answered. Charges are posted: they delay the calls for other participants from
 * the next answer on. (Posted messages come by the socket of each card, and nothing tells the order
 * of two sockets.) A thread is in one call at a time. Therefore its other participants do not hold
 * time while one of them waits, reads, has left or comes back. A participant belongs to the thread
 * that made the last request for it.
 *
 * A thread that makes a request for the card of another thread takes that thread's place: the other
 * thread's cards follow. (Otherwise a program that opens two cards in one thread and drives them in
 * another one would never see time go on.) A card that follows goes back alone when another thread
 * makes a request for it. A card is its participant 0; the others have one thread each (own_clock)
 * and do not follow.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

#include "../profile.h"
#include "dibber_interface.h"

namespace dibber {

class Timeline;

class Clock {
public:
    using Reply = std::function<void(const dibber_clock_reply&)>;

    /* The run starts when `participants` have joined, free clients counted. `now` is the host's
     * time. */
    Clock(const Profile& profile, unsigned participants, const Time& now);

    /* A CLOCK_MESSAGE; `reply` is called now or when the wait is over. */
    void request(unsigned card, const dibber_clock_request& request, Reply reply);

    /* All participants of a card have gone for good. */
    void disconnect(unsigned card);

    /* Clients without the extension. */
    void free_client(bool comes);
    bool any_free() const { return free_clients_ > 0; }

    /* The participant that owns a register access of `card` at `endpoint`. If that endpoint has not
     * joined, it is the first participant that runs. Empty if none has joined. */
    std::optional<unsigned> owner(unsigned card, std::optional<unsigned> endpoint) const;
    Time time_of(unsigned card, unsigned endpoint) const;

    /* A participant computes until `end`. */
    void compute(unsigned card, unsigned endpoint, Time end);

    /* A register read keeps its owner waiting. */
    void begin_read(unsigned card, unsigned endpoint);
    void end_read(unsigned card, unsigned endpoint);

    /* The card wrote memory, now. */
    void written(unsigned card, uint64_t address, uint64_t bytes);

    /* The time of the next wait that ends by itself; and end it, with `now` at that time. */
    Time next_wake() const;
    void wake();

    /* Whether time may go on. If not, the participant that holds it, as text for a person.
     */
    bool may_run() const;
    std::string holder() const;
    /* The participants that have left while another one waits to come back; empty if none waits. */
    std::string missing() const;

    /* Whether one thread has participants of two cards. Messages of such a thread come by two
     * sockets, and time may go on only after both sockets have been read empty. */
    bool shares_thread() const;

    /* All participants have gone. */
    bool finished() const { return seen_ && participants_.empty() && free_clients_ == 0; }

    Timeline* timeline = nullptr; /* if there is one */

    Time run_time() const { return now_ - start_; }

private:
    /* A `paused` participant has left as one that `left`, but no other one waits for its return. */
    enum class State { runs, waits, reads, left, enters, paused };

    struct Participant {
        State state = State::runs;
        uint64_t thread = 0;  /* thread of its last request; 0: not known */
        bool follows = false; /* `thread` has made no request for it, but for another card */
        Time time = 0;        /* its own */
        Time begun = 0;       /* its wait or read */
        Time answered = 0;    /* the same when a request of its thread was answered last */
        Time cpu = 0;         /* charged so far */
        uint64_t watch = 0, length = 0;
        Time wake_at = never;
        bool woken = false;
        Reply reply;
    };
    using Key = std::pair<unsigned, unsigned>; /* card, endpoint */

    void join(const Key& key, uint64_t thread, const Reply& reply);
    void give_to(uint64_t thread, const Key& key);
    void wait(Participant& p, const dibber_clock_request& request, Reply reply);
    void answer(const Participant& p, const Reply& reply, uint32_t error = 0,
                bool woken = false) const;
    void settle_leavers();
    bool stopped() const;
    std::string names(const std::function<bool(const Participant&)>& chosen,
                      const char* verb) const;
    bool thread_is(const Participant& p, std::initializer_list<State> states) const;
    bool holds_time(const Participant& p) const;
    void catch_up(Participant& p, bool answered);

    const Profile& profile_;
    const unsigned expected_;
    const Time& now_;
    std::map<Key, Participant> participants_;
    unsigned free_clients_ = 0, joined_ = 0;
    bool started_ = false, seen_ = false;
    Time start_ = 0;
};

} // namespace dibber
