"""Stack and instructions of the image have bounds, and the tool refuses code without bounds."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest
from dibber.interface.description import C

from tests.firmware.mcp_native import FIRMWARE, OUT

sys.path.insert(0, str(FIRMWARE))

import bounds


@pytest.fixture(scope="module", params=["128k", "64k"])
def image(request):
    """The ELF of each size of SRAM. MCP_IMAGES names another folder of them."""
    if "MCP_IMAGES" in os.environ:
        return pathlib.Path(os.environ["MCP_IMAGES"]) / request.param / "mcp.elf"
    subprocess.run(
        ["make", "-C", str(FIRMWARE), f"PYTHON={sys.executable}"], check=True, capture_output=True
    )
    return FIRMWARE.parent / "build" / "firmware" / request.param / "mcp.elf"


@pytest.fixture(scope="module")
def report(image):
    return bounds.report(image)


@pytest.fixture
def of_image(image):
    """The name of a figure of this image; the simulated cards' has none of its own."""
    return lambda name: name if image.parent.name == "128k" else f"{name}_{image.parent.name}"


def test_the_stack_fits_whatever_is_called(report, figure, of_image):
    rows, (used, there) = report
    assert used >= max(stack for _, stack, *_ in rows)
    assert figure(of_image("mcp_stack_bytes"), used, "bytes", at_most=there // 4)


def test_each_handler_has_a_bound(report):
    rows, _ = report
    costs = {name: cost for name, _, cost, _ in rows}
    assert set(bounds.HANDLERS) - bounds.OPTIONAL < set(costs) and min(costs.values()) > 10
    # A turn also runs inlined handlers.
    assert costs["loop, one turn"] > max(costs[name] for name in bounds.HANDLERS if name in costs)


# The watchdog's, in cycles.
PERIOD = int(re.search(r"#define MCP_WATCHDOG\s+(\d+)u", (FIRMWARE / "runtime.h").read_text())[1])


def test_the_watchdog_hears_of_a_program_that_works_before_it_bites(report, figure, of_image):
    rows, _ = report
    silence = {name: cycles for name, *_, cycles in rows}
    assert PERIOD == 125_000 and max(silence.values()) < PERIOD
    assert figure(
        of_image("mcp_silence_cycles"),
        silence["loop, one turn"],
        "cycles between two writes of WATCHDOG at most",
        at_most=PERIOD,
    )


def test_without_the_writes_in_long_turns_there_is_no_such_bound(image, monkeypatch):
    monkeypatch.setattr(bounds, "ALIVE", {"mcp_boot", "loop"})
    found = bounds.Bounds(bounds.Image(image))
    found.stack(found.image.symbols["main"])
    assert len(found.kicks) >= 2 and found.silent_turn() > 100 * PERIOD


def test_the_wait_for_an_event_counts_as_silence(image, report, monkeypatch):
    assert bounds.HOLD == C.EVENTS_HOLD < PERIOD // 10
    monkeypatch.setattr(bounds, "HOLD", 10 * PERIOD)
    (*handlers, turn), _ = report
    (*others, longer), _ = bounds.report(image)
    assert longer[-1] > 10 * PERIOD > turn[-1] and others == handlers


def longest(ways):
    """(through, before, behind, between) of explicit paths: lists of cycles in which None is a
    write of WATCHDOG.
    """
    best = [bounds.Ways.NONE] * 4
    for way in ways:
        sums = [0]
        for cycles in way:
            sums = [*sums, 0] if cycles is None else [*sums[:-1], sums[-1] + cycles]
        parts = ([sums[0]], [], [], []) if len(sums) == 1 else ([], sums[:1], sums[-1:], sums[1:-1])
        best = [max([b, *part]) for b, part in zip(best, parts)]
    return best


def any_code(rng, depth=3):
    """Code in three forms: its bounds, and all paths through it."""
    kind = rng.choice("+|*") if depth else "."
    if kind == ".":
        cycles = rng.choice([None, *range(9)])
        return (bounds.Ways(before=0, behind=0) if cycles is None else bounds.Ways(cycles)), [
            [cycles]
        ]
    one, ways = any_code(rng, depth - 1)
    if kind == "*":
        times = rng.randint(1, 3)
        rounds, ways_of = [[]], []
        for _ in range(times):
            rounds = [a + b for a in rounds for b in ways]
            ways_of += rounds
        return one * times, ways_of
    other, others = any_code(rng, depth - 1)
    if kind == "|":
        return one | other, ways + others
    return one + other, [a + b for a in ways for b in others]


def test_the_longest_ways_are_those_of_all_ways_written_out(seed):
    rng, found = random.Random(seed), 0
    while found < 300:
        known, ways = any_code(rng)
        if len(ways) > 3000:
            continue
        found += 1
        assert list(known.parts) == longest(ways)


def test_every_handler_of_the_event_loop_is_in_the_report():
    ran = set(
        re.findall(
            r"\brun(?:_alone)?\(DIBBER_MCP_STATE_\w+, (\w+)\)", (FIRMWARE / "main.c").read_text()
        )
    )
    inlined = {"flow_ack_handler"}
    assert ran - inlined == set(bounds.HANDLERS) - {"queue_drain"}


def body_of(file, function):
    return re.search(
        rf"^[^\n;]*\b{function}\([^;{{]*\)\n{{\n(.*?)^}}",
        next(FIRMWARE.rglob(file)).read_text(),
        re.M | re.S,
    )[1]


def test_what_is_said_of_loops_is_said_of_functions_that_loop():
    for file, function in bounds.LOOPS:
        assert re.search(r"\b(for|while|do)\b", body_of(file, function)), (file, function)
    for file, function in bounds.STRAIGHT:
        assert not re.search(r"\b(for|while|do)\b", body_of(file, function)), (file, function)


WITHOUT_BOUND = {
    "recursion": (
        "int f(int n) { return n ? f(n - 1) * n + f(n - 2) : 1; } void main(void) { x = f(x); }",
        "f calls f",
    ),
    "indirect call": ("int (*volatile g)(int); void main(void) { x = g(x) + 1; }", "jalr"),
    "a long array": (
        "void h(char *); void main(void) { char a[x]; h(a); } void h(char *a) { *a = x; }",
        "sp",
    ),
    "loop": ("void main(void) { while (x) x = x * 5; }", "no bound of the loop"),
}


@pytest.mark.parametrize("what", WITHOUT_BOUND)
def test_what_has_no_bound_is_refused(what):
    source, why = WITHOUT_BOUND[what]
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / f"{what.replace(' ', '_')}.elf"
    subprocess.run(
        [
            bounds.TOOLS + "gcc",
            "-march=rv32im_zicsr",
            "-mabi=ilp32",
            "-O1",
            "-g",
            "-ffreestanding",
            "-nostdlib",
            "-fno-inline",
            "-fno-optimize-sibling-calls",
            "-x",
            "c",
            "-o",
            program,
            "-",
            "-Wl,-e,main",
        ],
        input=f"volatile int x;\n{source}",
        text=True,
        check=True,
    )
    image = bounds.Image(program)
    found = bounds.Bounds(image)
    with pytest.raises(bounds.Unbounded, match=why):
        found.stack(image.symbols["main"])
        found.cost(image.symbols["main"])


def instructions(what, source):
    """Bounds of a program in assembly, and its image."""
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / f"{what}.elf"
    subprocess.run(
        [
            bounds.TOOLS + "gcc",
            "-march=rv32im_zicsr",
            "-mabi=ilp32",
            "-nostdlib",
            "-mno-relax",
            "-x",
            "assembler",
            "-o",
            program,
            "-",
            "-Wl,-e,main",
        ],
        input=source,
        text=True,
        check=True,
    )
    image = bounds.Image(program)
    return bounds.Bounds(image), image


def function(name, body):
    return f".globl {name}\n.type {name}, @function\n{name}:\n{body}\n.size {name}, .-{name}\n"


# What the compiler makes of the ends of functions: (functions, stack and instructions of main).
ENDS = {
    "no_return": (
        function("main", "addi sp,sp,-16\njal f")
        + function("other", "jal main\nret")
        + function("f", "nop\nebreak"),
        (16, 4),
    ),
    "through": (
        function("main", "addi sp,sp,-16\njal f")
        + function("other", "jal main\nret")
        + function("f", "nop\nj g")
        + function("g", "nop\nebreak"),
        (16, 6),
    ),
    "trap": (function("main", "beqz a0,1f\nret\n1: ebreak") + function("other", "j main"), (0, 2)),
    "shared_tail": (
        function("main", "addi sp,sp,-16\nj 1f")
        + function("f", "addi sp,sp,-16\n1: nop\naddi sp,sp,16\nret"),
        (16, 5),
    ),
    "tail_call": (
        function("main", "addi sp,sp,-16\naddi sp,sp,16\nj f")
        + function("f", "addi sp,sp,-32\naddi sp,sp,32\nret"),
        (32, 6),
    ),
    "kept": (
        function("main", "jal t0,__riscv_save_0\nnop\nj __riscv_restore_0")
        + function("__riscv_save_0", "addi sp,sp,-16\nsw ra,12(sp)\njr t0")
        + function("__riscv_restore_0", "lw ra,12(sp)\naddi sp,sp,16\nret"),
        (16, 9),
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_functions_end_where_their_code_does(what):
    source, expected = ENDS[what]
    found, image = instructions(what, ".text\n" + source)
    main = image.symbols["main"]
    assert (found.stack(main), found.cost(main)) == expected


REFUSED = {
    "own_start": (
        function("main", "addi a0,a0,-1\nbnez a0,2f\nret\n2: j main"),
        "no bound of the loop",
    ),
    "deeper": (
        function("main", "addi sp,sp,-16\nbnez a0,main\naddi sp,sp,16\nret"),
        "depends on the way",
    ),
    "unbalanced": (function("main", "addi sp,sp,-16\nret"), "not as it was"),
    "to_each_other": (
        function("main", "beqz a0,1f\nret\n1: j f") + function("f", "nop\nj main"),
        "main calls f calls main",
    ),
    "off_the_end": (function("main", "nop"), "no instruction"),
    "keeps_and_works": (
        function("main", "jal t0,__riscv_save_0\nret") + function("__riscv_save_0", "nop\njr t0"),
        "does more than keep registers",
    ),
    "not_millicode": (
        function("main", "jal t0,f\nret") + function("f", "addi sp,sp,-16\njr t0"),
        "jal t0",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_goes_on_is_not_taken_for_an_end(what):
    source, why = REFUSED[what]
    found, image = instructions(what, ".text\n" + source)
    with pytest.raises(bounds.Unbounded, match=why):
        found.stack(image.symbols["main"])
        found.cost(image.symbols["main"])
