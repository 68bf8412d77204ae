/* SPDX-License-Identifier: BSD-2-Clause */

#include "check.h"

namespace dibber {

namespace {

/* PCIe Base 3.0, section 2.2.5. */
bool byte_enables_legal(const Tlp& tlp)
{
    unsigned first = tlp.first_be(), last = tlp.last_be(), dws = tlp.length_dws();
    if (dws == 1)
        return last == 0;
    if (first == 0 || last == 0)
        return false;
    if (dws == 2 && (tlp.address() & 7) == 0)
        return true; /* a quadword may have any enables */
    /* Otherwise they must be contiguous: up to the end of the first DW, from the start of the last.
     */
    bool first_ok = first == 0xf || first == 0xe || first == 0xc || first == 0x8;
    bool last_ok = last == 0xf || last == 0x7 || last == 0x3 || last == 0x1;
    return first_ok && last_ok;
}

Fault check_request(const Tlp& tlp, const ConfigSpace& config, uint16_t id)
{
    if (tlp.requester() != id)
        return Fault::requester;
    if (!byte_enables_legal(tlp))
        return Fault::byte_enables;
    if (tlp.header_dws() == 4 && tlp.dw[2] == 0)
        return Fault::address_form; /* PCIe Base 3.0, 2.2.4.1: below 4 GiB the 32-bit form */
    if ((tlp.address() & 0xfff) + 4 * tlp.length_dws() > 4096)
        return Fault::page_crossing;
    if (tlp.has_data()) {
        if (4 * tlp.length_dws() > config.max_payload())
            return Fault::payload_size;
    } else {
        if (4 * tlp.length_dws() > config.max_read_request())
            return Fault::request_size;
        if (tlp.tag() >= 32 && !config.extended_tags())
            return Fault::tag;
    }
    return Fault::none;
}

} // namespace

Fault check(const Tlp& tlp, const ConfigSpace& config, uint16_t id)
{
    TlpKind kind = tlp.kind();
    if (kind == TlpKind::other)
        return Fault::format;
    if (tlp.dw.size() != tlp.total_dws())
        return Fault::length;
    if (tlp.dw[0] & 0xc000)
        return Fault::poisoned; /* digest or poison bit: this card sends neither */
    if (kind != TlpKind::completion)
        return check_request(tlp, config, id);
    if (tlp.dw[1] >> 16 != id)
        return Fault::requester;
    if (tlp.has_data() && 4 * tlp.length_dws() > config.max_payload())
        return Fault::payload_size;
    return Fault::none;
}

} // namespace dibber
