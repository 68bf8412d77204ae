/* SPDX-License-Identifier: BSD-2-Clause */

#include "memory.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dibber {

int Memory::insert(uint64_t address, Region region)
{
    if (region.size == 0 || address + (region.size - 1) < address)
        return EINVAL;
    auto next = regions_.lower_bound(address);
    if (next != regions_.end() && next->first - address < region.size)
        return EEXIST;
    if (next != regions_.begin()) {
        auto before = std::prev(next);
        if (address - before->first < before->second.size)
            return EEXIST;
    }
    if (regions_.size() >= max_regions)
        return ENOSPC;
    regions_.emplace(address, region);
    return 0;
}

int Memory::map_file(uint64_t address, uint64_t size, int fd, uint64_t offset, bool readable,
                     bool writable)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return errno;
    if (S_ISREG(status.st_mode) &&
        (offset > uint64_t(status.st_size) || size > uint64_t(status.st_size) - offset))
        return EINVAL;
    if (size == 0)
        return EINVAL;
    /* The offset of a part of a file need not lie on a page. */
    uint64_t slip = offset % uint64_t(sysconf(_SC_PAGESIZE));
    int protection = (readable || writable ? PROT_READ : PROT_NONE) | (writable ? PROT_WRITE : 0);
    void* base = mmap(nullptr, size + slip, protection, MAP_SHARED, fd, off_t(offset - slip));
    if (base == MAP_FAILED)
        return errno;
    int error = insert(
        address, {size, static_cast<uint8_t*>(base) + slip, true, readable, writable, nullptr});
    if (error)
        munmap(base, size + slip);
    return error;
}

int Memory::map_message(uint64_t address, uint64_t size, bool readable, bool writable,
                        MessageMemory& client)
{
    return insert(address, {size, nullptr, false, readable, writable, &client});
}

int Memory::map_local(uint64_t address, std::span<uint8_t> bytes)
{
    return insert(address, {bytes.size(), bytes.data(), false, true, true, nullptr});
}

void Memory::drop(Regions::iterator region)
{
    if (region->second.mapped) {
        uintptr_t base = reinterpret_cast<uintptr_t>(region->second.bytes);
        uintptr_t slip = base % uintptr_t(sysconf(_SC_PAGESIZE));
        munmap(reinterpret_cast<void*>(base - slip), region->second.size + slip);
    }
    regions_.erase(region);
}

int Memory::unmap(uint64_t address, uint64_t size)
{
    if (size == 0 || address + (size - 1) < address)
        return EINVAL;
    uint64_t last = address + (size - 1);
    auto region = regions_.lower_bound(address), end = regions_.upper_bound(last);
    auto across = [&](uint64_t edge) {
        auto at = find(edge);
        return at != regions_.end() && at->first < edge;
    };
    if (across(address) || (last + 1 && across(last + 1)))
        return EINVAL;
    if (region == end)
        return ENOENT;
    while (region != end)
        drop(region++);
    return 0;
}

void Memory::clear()
{
    while (!regions_.empty())
        drop(regions_.begin());
}

Memory::Regions::iterator Memory::find(uint64_t address)
{
    auto region = regions_.upper_bound(address);
    if (region == regions_.begin())
        return regions_.end();
    --region;
    return address - region->first < region->second.size ? region : regions_.end();
}

bool Memory::parts(uint64_t address, uint64_t bytes, bool Region::* right,
                   std::vector<std::pair<Regions::iterator, std::pair<uint64_t, uint64_t>>>& out)
{
    for (uint64_t done = 0; done < bytes;) {
        auto region = find(address + done);
        if (region == regions_.end() || !(region->second.*right))
            return false;
        uint64_t offset = address + done - region->first;
        uint64_t n = std::min(bytes - done, region->second.size - offset);
        out.push_back({region, {offset, n}});
        done += n;
    }
    return true;
}

bool Memory::write(uint64_t address, std::span<const uint8_t> bytes)
{
    std::vector<std::pair<Regions::iterator, std::pair<uint64_t, uint64_t>>> list;
    if (!parts(address, bytes.size(), &Region::writable, list))
        return false;
    for (auto& [region, part] : list) {
        auto piece = bytes.first(part.second);
        if (region->second.bytes)
            std::memcpy(region->second.bytes + part.first, piece.data(), piece.size());
        else
            region->second.client->message_write(region->first + part.first, piece);
        bytes = bytes.subspan(part.second);
    }
    return true;
}

bool Memory::read(uint64_t address, unsigned bytes, Answer answer)
{
    std::vector<std::pair<Regions::iterator, std::pair<uint64_t, uint64_t>>> list;
    if (!parts(address, bytes, &Region::readable, list))
        return false;
    if (list.size() == 1 && list[0].first->second.bytes) {
        answer(true, {list[0].first->second.bytes + list[0].second.first, bytes});
        return true;
    }
    struct Gather {
        std::vector<uint8_t> bytes;
        size_t missing;
        bool good = true;
        Answer answer;
    };
    auto gather = std::make_shared<Gather>();
    gather->bytes.resize(bytes);
    gather->missing = list.size();
    gather->answer = std::move(answer);
    size_t done = 0;
    for (auto& [region, part] : list) {
        auto collect = [gather, done, n = part.second](bool good, std::span<const uint8_t> data) {
            if (good && data.size() == n)
                std::memcpy(gather->bytes.data() + done, data.data(), n);
            else
                gather->good = false;
            if (--gather->missing == 0)
                gather->answer(gather->good, gather->bytes);
        };
        done += part.second;
        if (region->second.bytes)
            collect(true, {region->second.bytes + part.first, part.second});
        else
            region->second.client->message_read(region->first + part.first, unsigned(part.second),
                                                collect);
    }
    return true;
}

void survive_truncated_files()
{
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
        uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) & ~uintptr_t(4095);
        if (mmap(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            _exit(1);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}

} // namespace dibber
