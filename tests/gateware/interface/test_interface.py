# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import re
import subprocess

import pytest

from boards.sim import SimCard, SourceList

from dibber.interface import description, schema
from dibber.interface.description import COUNTERS, HOST, INTERFACE, STRUCTS
from dibber.interface.generate import c_header, main, reference

COMPILERS = [("c", ["gcc", "-std=c11"]), ("c++", ["g++", "-std=c++17"])]


def compiles(language, command, text, folder):
    """Whether `text`, which includes the generated header, compiles without a warning."""
    (folder / "dibber_interface.h").write_text(c_header())
    result = subprocess.run(
        command
        + ["-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(folder), "-"],
        input=text,
        text=True,
        capture_output=True,
    )
    return result.returncode == 0, result.stderr


# What is generated --------------------------------------------------------------------------------


@pytest.mark.parametrize("language, command", COMPILERS)
def test_the_header_compiles_and_agrees_with_the_description(language, command, tmp_path):
    checks = [f"ASSERT(DIBBER_INTERFACE_HASH == 0x{INTERFACE.hash:08x}u);"]
    for s in STRUCTS:
        checks.append(f"ASSERT(sizeof(struct dibber_{s.name}) == {s.size});")
        checks += [
            f"ASSERT(offsetof(struct dibber_{s.name}, {m.name}) == {m.offset});" for m in s.members
        ]
    for b in INTERFACE.banks:
        checks += [f"ASSERT(DIBBER_{b.name.upper()}_{r.name} == {r.offset});" for r in b.registers]
    define = "static_assert(x, #x)" if language == "c++" else "_Static_assert(x, #x)"
    text = (
        f'#include <stddef.h>\n#include "dibber_interface.h"\n#define ASSERT(x) {define}\n'
        + "\n".join(checks)
    )
    good, messages = compiles(language, command, text, tmp_path)
    assert good, messages


@pytest.mark.parametrize("stale", ["VERSION", "HASH"])
@pytest.mark.parametrize("language, command", COMPILERS)
def test_a_consumer_written_for_another_interface_does_not_compile(
    language, command, stale, tmp_path
):
    """How software that keeps the numbers of the interface it was written for is refused."""
    define = "static_assert" if language == "c++" else "_Static_assert"
    number = {"VERSION": INTERFACE.version_word, "HASH": INTERFACE.hash}[stale]
    consumer = (
        f'#include "dibber_interface.h"\n{define}(DIBBER_INTERFACE_{stale} == 0x%xu, '
        f'"another interface");\n'
    )
    assert compiles(language, command, consumer % number, tmp_path)[0]
    good, messages = compiles(language, command, consumer % (number ^ 1), tmp_path)
    assert not good and "another interface" in messages


def test_a_second_run_of_the_generator_leaves_the_files_alone(tmp_path):
    assert main(["generate", str(tmp_path)]) == 0
    before = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    assert main(["generate", str(tmp_path)]) == 0
    assert before and before == {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}


def test_the_reference_page_has_every_register_and_member():
    page = reference()
    for b in INTERFACE.banks:
        for r in b.registers:
            assert f"`{r.name}" in page, r.name
    for s in STRUCTS:
        for m in s.members:
            assert f"`{m.name}" in page, f"{s.name}.{m.name}"


# What the hash covers -----------------------------------------------------------------------------


def changed(**fields):
    return dataclasses.replace(INTERFACE, **fields).hash


def test_any_change_of_layout_changes_the_hash_and_prose_does_not():
    name, value, doc = INTERFACE.constants[0]
    first = INTERFACE.structs[0]
    renamed = dataclasses.replace(first.members[0], name="other")
    shifted = dataclasses.replace(first.members[-1], offset=first.members[-1].offset + 4)
    others = [
        changed(version=(INTERFACE.version[0], INTERFACE.version[1] + 1)),
        changed(constants=((name, value + 1, doc),) + INTERFACE.constants[1:]),
        changed(enums=INTERFACE.enums[1:]),
        changed(
            structs=(dataclasses.replace(first, members=(renamed,) + first.members[1:]),)
            + INTERFACE.structs[1:]
        ),
        changed(
            structs=(dataclasses.replace(first, members=first.members[:-1] + (shifted,)),)
            + INTERFACE.structs[1:]
        ),
        changed(banks=INTERFACE.banks[::-1]),
    ]
    assert len({INTERFACE.hash, *others}) == len(others) + 1
    assert (
        changed(constants=((name, value, "in other words"),) + INTERFACE.constants[1:])
        == INTERFACE.hash
    )


# The description checks itself --------------------------------------------------------------------


def test_contradictions_in_a_description_are_errors():
    Register, Field, Member = schema.Register, schema.Field, schema.Member
    with pytest.raises(schema.InterfaceError, match="appears twice"):
        schema.bank("b", "", Register("A", "ro", ""), Register("A", "ro", ""))
    with pytest.raises(schema.InterfaceError, match="access"):
        schema.bank("b", "", Register("A", "read", ""))
    with pytest.raises(schema.InterfaceError, match="33 bits"):
        schema.bank("b", "", Register("A", "ro", "", (Field("x", 32, ""), Field("y", 1, ""))))
    with pytest.raises(schema.InterfaceError, match="not aligned"):
        schema.struct("s", 6, "", Member("a", "u16", ""), Member("b", "u32", ""))
    with pytest.raises(schema.InterfaceError, match="described as 8"):
        schema.struct("s", 8, "", Member("a", "u32", ""))
    with pytest.raises(schema.InterfaceError, match="does not fit"):
        schema.enum("e", 2, "", ("A", 4, ""))


def test_pages_windows_and_slots_do_not_overlap():
    C = description.C
    pages = sorted(
        [
            (C.HOST_BASE, HOST.size),
            (C.MSIX_TABLE_BASE, 16 * C.VECTORS),
            (C.MSIX_PBA_BASE, 8),
            (C.APERTURE_REGISTERS, description.WINDOW.size),
            (C.FIRMWARE_BASE, C.SRAM_MAX),
            (C.ENDPOINT_BASE, C.ENDPOINTS * C.ENDPOINT_STRIDE),
            (C.BAR0_SIZE, 0),
        ]
    )
    for (base, size), (following, _) in zip(pages, pages[1:]):
        assert base + size <= following
    assert C.SLOTS * C.SLOT_BYTES <= C.DOORBELL_OFFSET - C.SLOT_OFFSET
    assert C.DOORBELL_OFFSET + description.DOORBELL.size <= C.ENDPOINT_STRIDE
    assert description.SHARED.size == C.SHARED_FROM_END
    assert C.ENDPOINT_BASE + 16 * C.ENDPOINT_STRIDE <= C.BAR0_SIZE
    assert (
        description.MCP["PRODUCER"].count == C.ENDPOINTS
        and description.MCP["ACKED"].count == C.LANES * C.NODES
    )
    assert C.OUTBOX == C.ENDPOINTS and C.INBOX == C.OUTBOX + 1 and C.SLOT_SETS == C.INBOX + 1


# Counters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_every_counter_has_exactly_one_source(data_width):
    card = SimCard(SourceList(), data_width, clock_hz=125e6)  # a second source or none is an error
    names = [name for source in card.core.counter_sources for name in source]
    assert sorted(names) == sorted(name for name, _ in COUNTERS)


def test_every_counter_is_a_register_in_the_order_of_the_header():
    registers = [r.name for r in HOST.registers if r.name.startswith("COUNT_")]
    assert registers == [f"COUNT_{name}" for name, _ in COUNTERS]
    names = re.search(r"#define DIBBER_COUNTER_NAMES((?: \\\n\t\"\w+\",?)+)", c_header()).group(1)
    assert re.findall(r"\w+", names) == [name.lower() for name, _ in COUNTERS]
