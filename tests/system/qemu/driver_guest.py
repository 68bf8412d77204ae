"""A guest with dibber.ko and two simulated cards, and the programs that run in it."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib

import machine

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build"
DRIVER = ROOT / "software/driver"
EXAMPLES = ROOT / "software/lib/examples"

# In this order; behind the last one the driver has one card less.
TESTS = {
    "calls": HERE / "driver_calls.c",
    "registration": HERE / "driver_registration.c",
    "lives": HERE / "driver_lives.c",
    "fuzz": HERE / "driver_fuzz.c",
    "put_strided": EXAMPLES / "put_strided.c",
    "messages": EXAMPLES / "messages.c",
    "mailbox": EXAMPLES / "mailbox.c",
    "net": HERE / "driver_net.c",
    "net_wrong": HERE / "driver_net_wrong.c",
    "pairs": HERE / "driver_pairs.c",
}


def boot(directory, seed, tests=tuple(TESTS), counts=None, iommu=False, timeout=1800):
    """What a guest wrote that has run `tests`, names of TESTS, one behind the other.

    directory : pathlib.Path of an empty folder for the guest's files
    counts    : {name: how often}, of the tests that take a seed and a count
    timeout   : seconds of the wall clock
    """
    counts = counts or {}
    sources = {"init": [HERE / "guest_driver.c", HERE / "guest_common.c"]}
    names = {name: f"{n}_{name}" for n, name in enumerate(tests)}
    sources.update({f"tests/{names[name]}": [TESTS[name]] for name in tests})
    files = {
        "lib": None,
        "lib/firmware": None,
        "lib/firmware/dibber": None,
        "lib/firmware/dibber/mcp.dibfw": BUILD / "firmware/mcp.dibfw",
        "dibber.ko": BUILD / "driver/dibber.ko",
        "arguments": None,
        "tests": None,
    }
    for name, count in counts.items():
        files[f"arguments/{names[name]}"] = directory / f"{name}.arguments"
        files[f"arguments/{names[name]}"].write_text(f"{seed} {count}\n")
    for name, parts in sources.items():
        files[name] = directory / pathlib.Path(name).name
        machine.build(
            files[name],
            [*parts, BUILD / "lib/libdibber.a"],
            f"-I{ROOT}/software/lib/include",
            f"-I{BUILD}/generated",
            f"-I{DRIVER}",
            "-pthread",
        )
    archive = directory / "initramfs"
    archive.write_bytes(machine.initramfs(files))
    with machine.simulator(directory, seed, cards=2) as sockets:
        console = machine.boot(BUILD / "qemu", archive, sockets, iommu=iommu, timeout=timeout)
    (directory / "console").write_text(console)
    return console
