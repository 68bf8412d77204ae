/* One card offered to one client at a time over a UNIX socket, by the vfio-user protocol with the
 * clock extension (CLOCK_MESSAGE of the interface, capability `dibber_clock`). Capability
 * `dibber_random` offers a number that the client uses in place of a random one, so a run repeats.
 *
 * Nothing here blocks: a register read is answered when its completion comes, memory behind the
 * client is read by messages whose answers come later. Malformed messages get an errno and a line
 * on stderr; impossible ones close the connection. When a client vanishes, the card is reset for
 * the next one.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "../clock/clock.h"
#include "../host/root_complex.h"
#include "../host/write_combiner.h"
#include "connection.h"

namespace dibber::vfio {

/* The services of the simulation for a server. */
class Simulation {
public:
    virtual ~Simulation() = default;
    /* Call `action` when the host's time is `at`; actions of equal times run in order of card and
     * endpoint. */
    virtual void schedule(Time at, unsigned card, unsigned endpoint,
                          std::function<void()> action) = 0;
    /* Drop the actions that the client of `card` has scheduled; observers' accesses stay. */
    virtual void forget(unsigned card) = 0;
    virtual void reset_card(unsigned card) = 0;
    /* A number for the card's present power-on: another one after each loss of power, the same for
     * the same seed. */
    virtual uint32_t drawn_for(unsigned card) const = 0;

    /* CRC of the image that is in a card's SRAM when its client comes; 0: none. */
    virtual uint32_t preloaded() const = 0;
    virtual Time now() const = 0;
    /* "time goes on", or the reason why not, as text. */
    virtual std::string clock_state() const = 0;
};

class Server : public MessageMemory {
public:
    /* Listens on `path`; throws std::runtime_error that names it. */
    Server(const std::string& path, unsigned card, Simulation& simulation, Clock& clock,
           RootComplex& host, Memory& memory);
    ~Server() override;

    /* For poll(2): the descriptors, and the work after it. */
    void add_to(std::vector<pollfd>& list) const;
    /* Whether there was a message or a new client. */
    bool serve();

    /* A client of the clock owes an answer about its memory: time stands until it comes. */
    bool stalls() const
    {
        return clocked_ && (reads_unanswered_ > 0 || requests_.size() > max_unanswered);
    }

    /* From the root complex: the card raised a vector, now. */
    void interrupt(unsigned vector);

    void message_write(uint64_t address, std::span<const uint8_t> bytes) override;
    void message_read(uint64_t address, unsigned bytes, Answer answer) override;

private:
    struct Request { /* of ours, unanswered */
        uint64_t serial;
        uint64_t bytes; /* read; 0 for a write */
        Answer answer;
    };

    bool serve_client();
    void accept();
    void disconnect(const std::string& why);
    void handle(Message& message);
    void handle_reply(const Message& message);
    void dispatch(Message& message);
    void reply(const Header& to, std::span<const uint8_t> first = {},
               std::span<const uint8_t> second = {});
    void say(const std::string& what);

    void on_version(const Message& message);
    void on_dma_map(const Message& message);
    void on_dma_unmap(const Message& message);
    void on_get_info(const Message& message);
    void on_get_region_info(const Message& message);
    void on_get_irq_info(const Message& message);
    void on_set_irqs(Message& message);
    void on_region_read(const Message& message);
    void on_region_write(const Message& message);
    void on_reset(const Message& message);
    void on_clock(const Message& message);

    /* Find the participant of an access of BAR 0 at `offset`, and do the access at its time. */
    unsigned owner(uint64_t offset) const;
    void at_time_of(unsigned endpoint, uint64_t bytes, std::function<void()> action);
    void at(Time time, unsigned endpoint, uint64_t bytes, std::function<void()> action);
    /* Stores of a processor to BAR 2, and what empties its buffers. */
    void store(unsigned endpoint, uint64_t offset, std::span<const uint8_t> bytes);
    void fence(unsigned endpoint);
    void fence_all(unsigned endpoint);
    WriteCombiner& combiner(unsigned endpoint);
    bool backlogged() const;
    void program_vectors();
    void signal_interrupts();
    uint16_t send_request(Command command, const DmaAccess& access, std::span<const uint8_t> bytes,
                          Request request);

    /* Limit of writes by message under way. A client without the clock cannot be held up, only cut
     * off. */
    static constexpr size_t max_unanswered = 1024, max_requests = 0xff00;

    /* Bytes of accesses that wait for their time. Time may stand while a client of the clock sends,
     * so that client is cut off at the limit. Other clients are read more slowly. */
    static constexpr uint64_t max_scheduled = uint64_t(64) << 20;

    const std::string path_;
    const unsigned card_;
    Simulation& simulation_;
    Clock& clock_;
    RootComplex& host_;
    Memory& memory_;
    Descriptor listener_;

    std::shared_ptr<Connection> client_;
    bool versioned_ = false, clocked_ = false, used_before_ = false;
    unsigned complaints_ = 0;
    std::array<Descriptor, DIBBER_VECTORS> eventfds_;
    std::map<unsigned, WriteCombiner> combiners_; /* of each participant's processor */

    uint64_t scheduled_ = 0;
    uint64_t next_serial_ = 0;
    std::map<uint16_t, Request> requests_;
    uint64_t reads_unanswered_ = 0;
    std::deque<std::pair<uint64_t, unsigned>>
        interrupts_; /* serial before which all must be acked */
};

} // namespace dibber::vfio
