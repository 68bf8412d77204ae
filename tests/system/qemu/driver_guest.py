"""A guest with dibber.ko and two simulated cards, and the programs that run in it."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib

from dibber_cli import machine

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLES = ROOT / "software/lib/examples"

# For cards with the remote window.
WINDOW = ("remote_window", "window")
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
    "queues": HERE / "driver_queues.c",
    "nfs": HERE / "driver_nfs.c",
    "crowd": HERE / "driver_crowd.c",
    "tools": HERE / "driver_tools.c",
    "bond": HERE / "driver_bond.c",
    "net_wrong": HERE / "driver_net_wrong.c",
    "hosts": HERE / "driver_hosts.c",
    "remote_window": EXAMPLES / "remote_window.c",
    "window": HERE / "driver_window.c",
    "ends": HERE / "driver_ends.c",
    "pairs": HERE / "driver_pairs.c",
}

# For four cards.
FOUR = ("bond",)
# Those of the guest with two cards and no window.
USUAL = tuple(name for name in TESTS if name not in WINDOW + FOUR)

# Of a fault, in the kernel's log.
SIGNS = ("BUG", "WARNING", "RIP:", "Oops", "hung", "waiting for dib")

# More sources of a test.
MORE = {"hosts": [HERE / "guest_hosts.c", machine.GUEST / "guest_common.c"]}
# Programs for two hosts, which the test `hosts` runs.
HOSTS = ("pingpong", "put_strided", "transpose")


def complaints(console):
    """The lines of the kernel's log that tell of a fault of the kernel or of the driver."""
    return [
        line
        for line in console.splitlines()
        if line.startswith("log ") and any(sign in line for sign in SIGNS)
    ]


def two_hosts(directory):
    """{name in the guest: file, or None for a folder} of the programs for two hosts, built static
    in `directory`.
    """
    files = {"hosts": None}
    for name in HOSTS:
        files[f"hosts/{name}"] = directory / f"two_hosts_{name}"
        machine.build(
            files[f"hosts/{name}"],
            [ROOT / "examples/two_hosts" / f"{name}.c", machine.BUILD / "lib/libdibber.a"],
            f"-I{ROOT}/software/lib/include",
            f"-I{machine.BUILD}/generated",
            "-pthread",
        )
    return files


def tools():
    """{name in the guest: file, or None for a folder} of the programs that fetch.py brought."""
    root = machine.QEMU / "tools"
    paths = {path.relative_to(root): path for path in sorted(root.rglob("*"))}
    files = {str(name): None if path.is_dir() else path for name, path in paths.items()}
    return {"tmp": None, **files}


def boot(
    directory,
    seed,
    tests=USUAL,
    counts=None,
    iommu=False,
    timeout=1800,
    program=None,
    cards=2,
):
    """What a guest wrote that has run `tests`, names of TESTS, one behind the other.

    directory : pathlib.Path of an empty folder for the guest's files
    counts    : {name: how often}, of the tests that take a seed and a count
    timeout   : seconds of the wall clock
    program   : the simulator, if it is not the usual one
    cards     : 2, or 4 in two pairs
    """
    names = {name: f"{n}_{name}" for n, name in enumerate(tests)}
    files = tools() if {"tools", "bond"} & set(tests) else {}
    if "hosts" in tests:
        files.update(two_hosts(directory))
    for name, count in (counts or {}).items():
        files[f"arguments/{names[name]}"] = directory / f"{name}.arguments"
        files[f"arguments/{names[name]}"].write_text(f"{seed} {count}\n", encoding="utf-8")
    programs = {names[name]: [TESTS[name], *MORE.get(name, [])] for name in tests}
    return machine.boot_with_driver(
        directory, seed, programs, files, iommu, timeout, program=program, cards=cards
    )
