/* The devices of the test programs. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdexcept>

#include "dibber_interface.h"
#include "generator.h"
#include "scratch.h"

namespace dibber {

const char* const default_device = "scratch";
const uint64_t aperture_bytes = 0;

std::unique_ptr<Device> make_device(const std::string& name, unsigned, const Profile& profile,
                                    uint64_t)
{
    if (name == "scratch")
        return std::make_unique<ScratchCard>(profile.card.data_width, DIBBER_BAR0_SIZE);
    if (name == "generator")
        return std::make_unique<Generator>(profile.card.data_width);
    throw std::runtime_error("device '" + name +
                             "' is not known here: there are scratch and generator");
}

} // namespace dibber
