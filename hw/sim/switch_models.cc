/* Verilated switches, each in a shared object: a simulator of cards alone needs none, and a switch
 * of 16 ports takes long to compile. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <dlfcn.h>

#include "switch_device.h"

namespace dibber {

MakeSwitch own_switches = nullptr;

namespace {

std::string model_name(unsigned ports, const Profile& profile)
{
    char clock[32] = "";
    if (profile.card.clock_mhz != 125)
        snprintf(clock, sizeof(clock), "-%g", profile.card.clock_mhz);
    return "dibber-switch-" + std::to_string(ports) + clock + ".so";
}

} // namespace

std::unique_ptr<SwitchDevice> make_switch(const std::string& name, unsigned ports,
                                          const Profile& profile, uint32_t identity)
{
    if (own_switches)
        return own_switches(name, ports, profile, identity);
    std::string file = model_name(ports, profile);
    std::error_code error;
    std::filesystem::path path =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / file;
    if (!std::filesystem::exists(path, error))
        throw std::runtime_error("switch '" + name + "': " + file +
                                 " is not built: run 'make switches PROFILE=" + profile.name + "'");
    /* It stays loaded: a switch that lost its power is made anew from it. */
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto* make =
        object ? reinterpret_cast<MakeSwitchModel>(dlsym(object, switch_model_symbol)) : nullptr;
    if (!make)
        throw std::runtime_error("switch '" + name + "': " + dlerror());
    return std::unique_ptr<SwitchDevice>(make(name.c_str(), identity));
}

} // namespace dibber
