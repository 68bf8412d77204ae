/* Faults of a TLP that the card sent. A second, independent checker reads the TLP trace. This
 * checker finds a bad TLP when it is sent, and keeps it from memory.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include "config_space.h"
#include "tlp.h"

namespace dibber {

enum class Fault {
    none,
    format,
    length,
    poisoned,
    requester,
    byte_enables,
    page_crossing,
    payload_size,
    request_size,
    tag,
    tag_in_flight,
    address_form,
    completion_unexpected,
    not_bus_master,
    unmapped,
    count
};

inline const char* fault_name(Fault fault)
{
    static const char* const names[] = {"none",
                                        "format",
                                        "length",
                                        "poisoned",
                                        "requester",
                                        "byte_enables",
                                        "page_crossing",
                                        "payload_size",
                                        "request_size",
                                        "tag",
                                        "tag_in_flight",
                                        "address_form",
                                        "completion_unexpected",
                                        "not_bus_master",
                                        "unmapped"};
    return names[unsigned(fault)];
}

/* Faults of one TLP taken by itself. `id` is the card's bus, device and function. */
Fault check(const Tlp& tlp, const ConfigSpace& config, uint16_t id);

} // namespace dibber
