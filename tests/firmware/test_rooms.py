"""The control program's modules include and call each other in one direction, except for the flows.

A module is a pair NAME.c and NAME.h. The four of firmware/flows/ are one machine and may call each
other. One function is called upwards: `transfer_ended`, which flows/ended.h declares.
"""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess

import pytest

from tests.firmware import mcp_native
from tests.firmware.mcp_native import FIRMWARE, OUT

FOLDER = OUT / "rooms"
MACHINE = {"flows/flow", "flows/bulk", "flows/express", "flows/fast"}
UPWARDS = {"transfer_ended"}


def module_of(path):
    return str(path.relative_to(FIRMWARE).with_suffix(""))


def included(folder, files):
    """{module: modules whose headers its files include}, of the files below a folder."""
    found = {}
    for path in files:
        module = str(path.relative_to(folder).with_suffix(""))
        names = re.findall(r'^#include "([^"]+)\.h"', path.read_text(), re.M)
        found.setdefault(module, set()).update(
            name for name in names if (folder / f"{name}.h").exists() and name != module
        )
    return found


def symbols(path):
    """(defined, undefined) symbols of a native object. The compiler inlines nothing here, so each
    call and each use of a variable of another module is among them.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / f"{module_of(path).replace('/', '_')}.o"
    command = ["gcc", "-std=gnu11", "-O0", "-w", "-DMCP_NATIVE", f"-I{FIRMWARE}", f"-I{OUT}"]
    subprocess.run([*command, "-c", "-o", target, path], check=True)
    defined, undefined = set(), set()
    out = subprocess.run(["nm", target], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        *_, kind, name = line.split()
        if kind == "U":
            undefined.add(name)
        elif kind.isupper():
            defined.add(name)
    return defined, undefined


def used(objects):
    """{module: modules whose functions or variables it uses}, of {module: (defined, undefined)}."""
    home = {name: module for module, (defined, _) in objects.items() for name in defined}
    return {
        module: {home[name] for name in undefined - UPWARDS if name in home} - {module}
        for module, (_, undefined) in objects.items()
    }


def circle(edges, machine=frozenset()):
    """The modules of a circle, in order, or []. Edges within `machine` do not count."""
    state, way = {}, []

    def walk(module):
        state[module] = "open"
        way.append(module)
        for following in sorted(edges.get(module, ())):
            if {module, following} <= machine:
                continue
            if state.get(following) == "open":
                return [*way[way.index(following) :], following]
            if following not in state and (found := walk(following)):
                return found
        state[module] = "done"
        way.pop()
        return []

    for module in sorted(edges):
        if module not in state and (found := walk(module)):
            return found
    return []


def joined(edges):
    """The same edges with the modules of MACHINE as one, so that a circle through two of them by
    way of another module is found.
    """
    name = lambda module: "flows" if module in MACHINE else module
    found = {}
    for module, following in edges.items():
        found.setdefault(name(module), set()).update(
            name(other) for other in following if name(other) != name(module)
        )
    return found


@pytest.fixture(scope="module")
def objects():
    mcp_native.build()  # and the headers that it writes
    return {module_of(path): symbols(path) for path in mcp_native.program_sources()}


def test_no_header_includes_itself_by_way_of_others():
    assert circle(included(FIRMWARE, FIRMWARE.rglob("*.h"))) == []


def test_modules_include_each_other_in_one_direction_except_for_the_flows():
    files = [*mcp_native.program_sources(), *FIRMWARE.rglob("*.h")]
    assert circle(joined(included(FIRMWARE, files))) == []


def test_modules_call_each_other_in_one_direction_except_for_the_flows(objects):
    assert circle(joined(used(objects))) == []


def test_the_flows_are_one_machine_and_need_their_exception(objects):
    edges = used(objects)
    assert circle({module: edges[module] & MACHINE for module in MACHINE}) != []


def test_one_function_is_called_upwards_and_the_flows_declare_it(objects):
    header = FIRMWARE / "flows" / "ended.h"
    assert set(re.findall(r"^\w[\w ]* \*?(\w+)\([^)]*\);", header.read_text(), re.M)) == UPWARDS
    [defines] = [m for m, (defined, _) in objects.items() if UPWARDS <= defined]
    assert defines == "operations"
    assert {m for m, (_, undefined) in objects.items() if UPWARDS & undefined} <= MACHINE


def test_each_module_has_its_header(objects):
    for module, (defined, _) in objects.items():
        text = (FIRMWARE / f"{module}.h").read_text()
        if module == "operations":
            text += (FIRMWARE / "flows" / "ended.h").read_text()
        assert [name for name in defined if not re.search(rf"\b{name}\b", text)] == [], module


def test_a_module_includes_the_header_of_each_module_that_it_calls(objects):
    """Directly, or through its includes."""
    direct = included(FIRMWARE, [*mcp_native.program_sources(), *FIRMWARE.rglob("*.h")])
    headers = included(FIRMWARE, FIRMWARE.rglob("*.h"))
    for module, others in used(objects).items():
        seen, todo = set(), list(direct[module])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += headers.get(name, ())
        assert others <= seen, module


def test_a_circle_is_found_wherever_it_is():
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}
    assert circle(edges) == ["a", "b", "c", "a"]
    assert circle(edges, machine={"a", "c"}) == []
    assert circle({"a": {"b"}, "b": set()}) == []
    assert circle(joined({"flows/bulk": {"x"}, "x": {"flows/fast"}})) == ["flows", "x", "flows"]


def test_a_call_upwards_is_a_circle(objects):
    """As if queue.c used the opcodes' table."""
    defined, undefined = objects["queue"]
    changed = objects | {"queue": (defined, undefined | {"command_handler"})}
    assert "queue" in circle(joined(used(changed)))
