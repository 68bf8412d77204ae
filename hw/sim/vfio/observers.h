/* Observers: clients such as `dibber fw top` that look at a card beside the client that drives it.
 * They read and write BAR 0 by the vfio-user protocol, on a socket of their own. They have no
 * memory, no interrupts, no configuration space, and no part in the clock. They come and go without
 * a reset of the card.
 *
 * A CLOCK_MESSAGE without payload asks which participant holds the clock. The answer is text in
 * ASCII, without a zero at its end: "time goes on", or "time stands: " and the reason. The question
 * lets no time pass.
 *
 * An access is made when it comes, as a TLP like any other. Time goes on for a read until it is
 * answered, even if a participant holds the clock. That participant then finds that it is late. So
 * a run with observers differs from a run without.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "../host/root_complex.h"
#include "connection.h"
#include "server.h"

namespace dibber::vfio {

class Observers {
public:
    /* Listens on `path`; throws std::runtime_error that names it. */
    Observers(const std::string& path, unsigned card, Simulation& simulation, RootComplex& host);
    ~Observers();

    /* For poll(2): the descriptors, and the work after it. */
    void add_to(std::vector<pollfd>& list) const;
    void serve();

    bool connected() const { return !clients_.empty(); }

    /* A read has not been answered, or the limit of waiting accesses is reached: time must go on.
     */
    bool pending() const { return reads_ > 0 || backlogged(); }

private:
    static constexpr size_t max_clients = 64;

    struct Client {
        explicit Client(Descriptor socket) : connection(std::move(socket)) {}
        Connection connection;
        bool versioned = false;
    };

    bool backlogged() const;
    void schedule(uint64_t bytes, std::function<void()> action);
    bool serve(const std::shared_ptr<Client>& client);
    void dispatch(const std::shared_ptr<Client>& client, const Message& message);
    void read(const std::shared_ptr<Client>& client, const Message& message);
    void write(const Message& message);

    const std::string path_;
    const unsigned card_;
    Simulation& simulation_;
    RootComplex& host_;
    Descriptor listener_;
    std::list<std::shared_ptr<Client>> clients_;
    unsigned reads_ = 0;
    uint64_t scheduled_ = 0; /* bytes of accesses that wait for their time */
};

} // namespace dibber::vfio
