/* The memory that a client opens to its card: ranges of bus addresses. They are mapped from a file
 * descriptor, owned by the simulator itself (tests), or reached by messages to the client. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace dibber {

/* The client's side of memory that is reached by message. */
class MessageMemory {
public:
    using Answer = std::function<void(bool good, std::span<const uint8_t> bytes)>;

    virtual ~MessageMemory() = default;
    virtual void message_write(uint64_t address, std::span<const uint8_t> bytes) = 0;
    /* Calls `answer` later, or at once if the client has gone. */
    virtual void message_read(uint64_t address, unsigned bytes, Answer answer) = 0;
};

class Memory {
public:
    using Answer = MessageMemory::Answer;

    /* As many as Linux's VFIO allows a container (vfio_iommu_type1, parameter dma_entry_limit). */
    static constexpr size_t max_regions = 65535;

    ~Memory() { clear(); }

    /* Each returns 0 or an errno: EEXIST overlap, EINVAL empty, wrapping or beyond the file's end,
     * ENOSPC more than `max_regions`. The descriptor stays the caller's. */
    int map_file(uint64_t address, uint64_t size, int fd, uint64_t offset, bool readable,
                 bool writable);
    int map_message(uint64_t address, uint64_t size, bool readable, bool writable,
                    MessageMemory& client);
    int map_local(uint64_t address, std::span<uint8_t> bytes);

    /* Unmaps all regions in the range, as an IOMMU does. EINVAL if a region lies across its edges;
     * ENOENT if there is no region. */
    int unmap(uint64_t address, uint64_t size);
    void clear();

    /* Does nothing and returns false if a byte is not mapped or not permitted. */
    bool write(uint64_t address, std::span<const uint8_t> bytes);

    /* Returns false and never calls `answer` if a byte is not mapped or not permitted. */
    bool read(uint64_t address, unsigned bytes, Answer answer);

private:
    struct Region {
        uint64_t size;
        uint8_t* bytes; /* null: by message */
        bool mapped, readable, writable;
        MessageMemory* client;
    };
    using Regions = std::map<uint64_t, Region>;

    int insert(uint64_t address, Region region);
    void drop(Regions::iterator region);
    Regions::iterator find(uint64_t address);
    /* Cut a range into parts that lie in one region each; false if there is a hole. */
    bool parts(uint64_t address, uint64_t bytes, bool Region::* right,
               std::vector<std::pair<Regions::iterator, std::pair<uint64_t, uint64_t>>>& out);

    Regions regions_;
};

/* A client may truncate the file that it shared; the access then raises SIGBUS. Put zero pages
 * there and go on, instead of dying. Call once at start. */
void survive_truncated_files();

} // namespace dibber
