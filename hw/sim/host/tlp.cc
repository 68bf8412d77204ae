/* SPDX-License-Identifier: BSD-2-Clause */

#include "tlp.h"

#include <bit>
#include <cstring>

namespace dibber {

namespace {

/* Header of a request: byte enables of the first and the last DW follow from the requested bytes.
 */
Tlp request(unsigned format, uint16_t requester, uint8_t tag, uint64_t address, unsigned bytes)
{
    unsigned lead = address & 3;
    unsigned dws = (lead + bytes + 3) / 4;
    unsigned tail = 4 * dws - lead - bytes;
    unsigned first = (0xf << lead) & 0xf, last = 0xf >> tail;
    if (dws == 1) {
        first &= last;
        last = 0;
    }
    bool wide = address >> 32;
    Tlp tlp;
    tlp.dw.reserve(4 + dws);
    tlp.dw.push_back((format | (wide ? 1 : 0)) << 29 | (dws & 0x3ff));
    tlp.dw.push_back(uint32_t(requester) << 16 | uint32_t(tag) << 8 | last << 4 | first);
    if (wide)
        tlp.dw.push_back(uint32_t(address >> 32));
    tlp.dw.push_back(uint32_t(address) & ~3u);
    return tlp;
}

} // namespace

TlpKind Tlp::kind() const
{
    if (type() == 0 && format() < 4)
        return has_data() ? TlpKind::memory_write : TlpKind::memory_read;
    if (type() == 0x0a && (format() == 0 || format() == 2))
        return TlpKind::completion;
    return TlpKind::other;
}

uint64_t Tlp::first_byte() const
{
    return address() + (first_be() ? std::countr_zero(first_be()) : 0);
}

unsigned Tlp::span_bytes() const
{
    unsigned dws = length_dws();
    unsigned last = dws == 1 ? first_be() : last_be();
    if (first_be() == 0)
        return 1; /* PCIe Base 3.0, table 2-38: a zero-length read counts as one byte */
    return 4 * dws - std::countr_zero(first_be()) - (std::countl_zero(last) - 28);
}

Tlp memory_write(uint16_t requester, uint64_t address, std::span<const uint8_t> bytes)
{
    Tlp tlp = request(2, requester, 0, address, unsigned(bytes.size()));
    unsigned header = tlp.header_dws();
    tlp.dw.resize(header + tlp.length_dws());
    std::memcpy(tlp.payload().data() + (address & 3), bytes.data(), bytes.size());
    return tlp;
}

Tlp memory_write_enabled(uint16_t requester, uint64_t address, std::span<const uint8_t> word,
                         unsigned enables)
{
    unsigned low = enables & 0xf, high = enables >> 4 & 0xf;
    if (!low || !high) {
        unsigned skipped = low ? 0 : 4;
        Tlp tlp = memory_write(requester, address + skipped, word.subspan(skipped, 4));
        tlp.dw[1] = (tlp.dw[1] & ~0xffu) | low | high;
        return tlp;
    }
    Tlp tlp = memory_write(requester, address, word.first(8));
    tlp.dw[1] = (tlp.dw[1] & ~0xffu) | high << 4 | low;
    return tlp;
}

Tlp memory_read(uint16_t requester, uint8_t tag, uint64_t address, unsigned bytes)
{
    return request(0, requester, tag, address, bytes);
}

Tlp completion(uint16_t completer, const Tlp& request, uint64_t first_byte,
               std::span<const uint8_t> bytes, unsigned remaining)
{
    unsigned lead = first_byte & 3;
    unsigned dws = (lead + unsigned(bytes.size()) + 3) / 4;
    Tlp tlp;
    tlp.dw.resize(3 + dws);
    /* Traffic class and attributes are those of the request. */
    tlp.dw[0] = 2u << 29 | 0x0au << 24 | (request.dw[0] & 0x00703000) | (dws & 0x3ff);
    tlp.dw[1] = uint32_t(completer) << 16 | (remaining & 0xfff);
    tlp.dw[2] =
        uint32_t(request.requester()) << 16 | uint32_t(request.tag()) << 8 | (first_byte & 0x7f);
    std::memcpy(tlp.payload().data() + lead, bytes.data(), bytes.size());
    return tlp;
}

Tlp completion_error(uint16_t completer, const Tlp& request, CompletionStatus status)
{
    Tlp tlp;
    tlp.dw = {0x0au << 24 | (request.dw[0] & 0x00703000),
              uint32_t(completer) << 16 | unsigned(status) << 13 | (request.span_bytes() & 0xfff),
              uint32_t(request.requester()) << 16 | uint32_t(request.tag()) << 8 |
                  uint32_t(request.first_byte() & 0x7f)};
    return tlp;
}

} // namespace dibber
