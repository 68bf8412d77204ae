"""Each part of the library has its own header, and no parts use each other in a circle.

The include graph is read from the sources, the call graph from the symbols of the objects (nm).
"""

# SPDX-License-Identifier: BSD-2-Clause

import functools
import pathlib
import re
import subprocess

import pytest

from tools.graphs import components

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "software/lib/src"
OBJECTS = ROOT / "build/lib"

# Headers of several files: types that these share, and constants of a protocol. They declare no
# function.
SHARED = {"exchange_state", "queue", "uart", "vfio_user", "vfio_user_client"}

# Headers whose functions are all `static inline`.
INLINE = {"kernel_device", "mapped_bar"}


def circles(graph):
    """The circles of {node: nodes that it uses}, as sorted lists: a circle is a strongly connected
    component of two nodes or more, or a node that uses itself.
    """
    return [
        sorted(part)
        for part in components(graph)
        if len(part) > 1 or part[0] in graph.get(part[0], ())
    ]


def includes():
    """{file name: names of the library's own files that it includes}."""
    return {
        path.name: set(re.findall(r'^#include "([\w/.]+)"', path.read_text(), re.M))
        for path in SOURCE.glob("*.[ch]")
    }


@functools.cache
def symbols():
    """{object: functions and data that it defines}, {object: those that it uses of others}."""
    names = [source.stem for source in SOURCE.glob("*.c")]
    rows = subprocess.check_output(
        ["nm", "-A", *(f"{name}.o" for name in names)], text=True, cwd=OBJECTS
    )
    defined, undefined = {name: set() for name in names}, {name: set() for name in names}
    for row in rows.splitlines():
        name, _, fields = row.partition(".o:")
        *_, kind, symbol = fields.split()
        if kind == "U":
            undefined[name].add(symbol)
        elif kind in "TDRBC":
            defined[name].add(symbol)
    return defined, undefined


def calls():
    """{object: objects whose functions or data it uses}."""
    defined, undefined = symbols()
    owner = {symbol: name for name, names in defined.items() for symbol in names}
    return {
        name: {owner[symbol] for symbol in names if symbol in owner}
        for name, names in undefined.items()
    }


def declared(path):
    """The functions of the library that a header declares, without those that it defines inline."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    text = re.sub(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    return set(re.findall(r"^(?!static)[\w *]*[ *](dib_\w+)\([^{};]*?\)[^{};]*;", text, re.M))


@pytest.mark.parametrize(
    "graph, expected",
    [
        ({"open": {"card"}, "card": {"clock"}, "clock": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, [["b", "c"]]),
        ({"a": {"a"}}, [["a"]]),
    ],
)
def test_a_circle_is_found_and_a_chain_is_none(graph, expected):
    assert circles(graph) == expected


def test_no_file_of_the_library_includes_itself_by_a_detour():
    graph = includes()
    assert len(graph) > 60
    assert {name for names in graph.values() for name in names} <= set(graph) | {
        "dibber/dibber.h",
        "dibber/window.h",
        "../../driver/dibber_ioctl.h",
        "../../driver/ring_nonce.h",
    }
    assert circles(graph) == []


def test_no_two_objects_of_the_library_call_each_other_by_any_detour():
    graph = calls()
    assert "card" in graph["open"] and "clock" in graph["card"]
    assert circles(graph) == []


def test_nothing_calls_what_opens_and_closes_a_card():
    assert [name for name, used in calls().items() if "open" in used] == []


def test_a_header_declares_functions_of_its_own_file_only():
    defined, _ = symbols()
    for path in SOURCE.glob("*.h"):
        if path.stem in INLINE:
            assert all(
                line.startswith("static inline")
                for line in re.findall(r"^\w.*\(.*", path.read_text(), re.M)
            )
            continue
        names = declared(path)
        if path.stem in SHARED:
            assert names == set(), path.name
        else:
            assert names and names <= defined[path.stem], (path.name, names - defined[path.stem])


def test_a_file_includes_the_header_of_each_function_that_it_calls():
    _, undefined = symbols()
    home = {name: path.name for path in SOURCE.glob("*.h") for name in declared(path)}
    graph = includes()

    def reached(name, seen):
        for other in graph.get(name, ()):
            if other not in seen:
                seen.add(other)
                reached(other, seen)
        return seen

    for name, used in undefined.items():
        missing = {home[symbol] for symbol in used if symbol in home} - reached(f"{name}.c", set())
        assert not missing, (name, missing)
