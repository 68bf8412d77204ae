/* A transaction layer packet, and the fields of it that matter here (PCIe Base 3.0, section 2.2).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../units.h"

namespace dibber {

enum class TlpKind { memory_read, memory_write, completion, other };

enum CompletionStatus : unsigned { successful = 0, unsupported_request = 1, completer_abort = 4 };

struct Tlp {
    /* The time at which it was at the place of this copy. */
    Time at = 0;

    /* Header DWs as numbers (fmt and type in bits 31:24 of the first), then payload DWs with the
     * byte of the lowest address in bits 7:0. */
    std::vector<uint32_t> dw;

    /* From the card: it began while Bus Master Enable was clear. */
    bool barred = false;

    unsigned format() const { return dw[0] >> 29; }
    unsigned type() const { return (dw[0] >> 24) & 0x1f; }
    bool has_data() const { return format() & 2; }
    unsigned header_dws() const { return format() & 1 ? 4 : 3; }
    unsigned length_dws() const { return (dw[0] & 0x3ff) ? (dw[0] & 0x3ff) : 1024; }
    unsigned total_dws() const { return header_dws() + (has_data() ? length_dws() : 0); }
    unsigned bytes() const { return 4 * unsigned(dw.size()); }

    uint16_t requester() const { return dw[1] >> 16; }
    uint8_t tag() const { return dw[1] >> 8; }
    unsigned first_be() const { return dw[1] & 0xf; }
    unsigned last_be() const { return (dw[1] >> 4) & 0xf; }
    uint64_t address() const
    {
        return (header_dws() == 4 ? uint64_t(dw[2]) << 32 | dw[3] : dw[2]) & ~uint64_t(3);
    }

    /* Of completions. */
    unsigned status() const { return (dw[1] >> 13) & 7; }
    unsigned byte_count() const { return (dw[1] & 0xfff) ? (dw[1] & 0xfff) : 4096; }
    uint16_t completion_requester() const { return dw[2] >> 16; }
    uint8_t completion_tag() const { return dw[2] >> 8; }
    unsigned lower_address() const { return dw[2] & 0x7f; }

    TlpKind kind() const;

    /* Bytes of a request after its byte enables: the address of the first one, and the number up to
     * the last. */
    uint64_t first_byte() const;
    unsigned span_bytes() const;

    std::span<const uint8_t> payload() const
    {
        return {reinterpret_cast<const uint8_t*>(dw.data() + header_dws()),
                4 * (dw.size() - header_dws())};
    }
    std::span<uint8_t> payload()
    {
        return {reinterpret_cast<uint8_t*>(dw.data() + header_dws()),
                4 * (dw.size() - header_dws())};
    }
};

/* Requests for `bytes` consecutive bytes; they must not cross 4 KiB. */
Tlp memory_write(uint16_t requester, uint64_t address, std::span<const uint8_t> bytes);
/* Of an aligned word of 8 bytes, those that `enables` has a bit for, in any pattern but 0 (PCIe
 * Base 3.0, 2.2.5: two aligned DWs may have any enables). */
Tlp memory_write_enabled(uint16_t requester, uint64_t address, std::span<const uint8_t> word,
                         unsigned enables);
Tlp memory_read(uint16_t requester, uint8_t tag, uint64_t address, unsigned bytes);

/* A completion of `request` with `bytes`; `remaining` bytes were still to come, these included.
 */
Tlp completion(uint16_t completer, const Tlp& request, uint64_t first_byte,
               std::span<const uint8_t> bytes, unsigned remaining);

/* A completion without data, with a status. */
Tlp completion_error(uint16_t completer, const Tlp& request, CompletionStatus status);

} // namespace dibber
