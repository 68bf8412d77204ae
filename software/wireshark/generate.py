"""Generate Wireshark's dissector from the interface description.

    python software/wireshark/generate.py OUT_DIRECTORY

writes `dibber.lua`: tables of constants, enumerations and structures, and behind them the text of
dissector.lua beside this file.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

from dibber.interface.description import CHANNEL, INTERFACE, PACKET, PACKET_HEADER
from dibber.interface.ethernet import ETHERNET_CONSTANTS, ETHERNET_ENUMS, ETHERNET_STRUCTS
from dibber.interface.generate import write_if_changed

BODY = pathlib.Path(__file__).resolve().parent / "dissector.lua"


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def members(struct):
    """(name, offset, size, doc) of a structure; an array has a number behind its name."""
    for m in struct.members:
        size = m.size // m.count
        for n in range(m.count):
            yield m.name + (str(n) if m.count > 1 else ""), m.offset + n * size, size, m.doc


def lua():
    lines = [
        f"-- Generated from the interface description, hash {INTERFACE.hash:08x}.",
        "local constants = {",
        *[f"\t{name} = {value}," for name, value, _ in ETHERNET_CONSTANTS],
        "}",
        "local enums = {",
    ]
    for e in (*ETHERNET_ENUMS, CHANNEL, PACKET):
        lines += [
            f"\t{e.name} = {{",
            "\t\tvalues = { " + " ".join(f"{n} = {v}," for n, v, _ in e.values) + " },",
            "\t\tnames = { " + " ".join(f"[{v}] = {quoted(n)}," for n, v, _ in e.values) + " },",
            "\t},",
        ]
    lines += ["}", "local structs = {"]
    for s in (*ETHERNET_STRUCTS, PACKET_HEADER):
        lines.append(f"\t{s.name} = {{")
        for name, offset, size, doc in members(s):
            numbers = f"offset = {offset}, size = {size}"
            lines.append(f"\t\t{{ name = {quoted(name)}, {numbers}, doc = {quoted(doc)} }},")
        lines.append("\t},")
    lines += ["}", "", BODY.read_text(encoding="utf-8")]
    return "\n".join(lines)


def main():
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    write_if_changed(output / "dibber.lua", lua())


if __name__ == "__main__":
    main()
