"""Constructors of gateware that are longer than 150 lines, for `make check-rooms`.

Migen describes a block in its constructor, so a long one is a block that nobody reads at once. A
constructor of the list may become shorter, never longer. None may be added.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ast

LINES = 150

# Lines that a constructor may have, by file below gateware/dibber/ and class.
LONGER = {
    ("bridge/frames", "FrameBridge"): 208,
    ("debug/hart", "HartControl"): 227,
    ("deposit/atomic", "AtomicUnit"): 279,
    ("deposit/cover", "Cover"): 190,
    ("deposit/express_lander", "ExpressLander"): 187,
    ("deposit/finder", "PageFinder"): 219,
    ("deposit/gather", "Gather"): 287,
    ("deposit/lists", "ListReader"): 255,
    ("deposit/packetizer", "Packetizer"): 160,
    ("deposit/pages", "Translator"): 334,
    ("deposit/scatter", "ScatterEngine"): 251,
    ("deposit/send_engine", "SendEngine"): 318,
    ("deposit/skip", "Skip"): 269,
    ("deposit/tags", "Tags"): 161,
    ("endpoint/queues", "QueueWriter"): 159,
    ("endpoint/turns", "CommandTurns"): 239,
    ("fabric/ring/election", "RingElection"): 155,
    ("fabric/ring/output", "RingOutput"): 155,
    ("fabric/ring/pair", "RingPairPort"): 180,
    ("fabric/ring/port", "RingPort"): 227,
    ("fabric/ring/send", "RingSend"): 278,
    ("fabric/ring/transit", "RingTransit"): 250,
    ("fabric/switch/teller", "Teller"): 164,
    ("fastpath/completer", "Completer"): 266,
    ("fastpath/contexts", "Contexts"): 212,
    ("fastpath/fast_commands", "FastCommands"): 246,
    ("host/bar", "BARDecoder"): 175,
    ("host/completions", "CompletionChecker"): 219,
    ("host/dma_reads", "DMAReads"): 151,
    ("host/dma_writes", "DMAWrites"): 152,
    ("host/posts", "PostWriter"): 156,
    ("link/ethernet/star", "EthernetStar"): 361,
    ("link/link_transmitter", "LinkTransmitter"): 211,
    ("link/row_transmitter", "RowTransmitter"): 171,
    ("mcp/host_registers", "HostRegisters"): 200,
    ("packet/build", "HeaderBuilder"): 217,
    ("packet/express_transmitter", "ExpressTransmitter"): 151,
    ("packet/flow_table", "FlowGate"): 168,
    ("packet/flow_table", "FlowTable"): 197,
    ("packet/packet_receiver", "DepositReceiver"): 289,
    ("window/loads", "LoadUnit"): 251,
    ("window/window", "RemoteWindow"): 184,
    ("window/writer", "CommandWriter"): 292,
}


def constructors(text):
    """(class, lines of its constructor) of a file's text, for each class that has one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    yield node.name, member.end_lineno - member.lineno + 1


def faults(files, longer=LONGER):
    """A sentence for each constructor that is too long, and for each wrong line of the list.

    files : {file below gateware/dibber/ without its ending: text}
    """
    lines = {
        (file, name): count for file, text in files.items() for name, count in constructors(text)
    }
    for (file, name), count in lines.items():
        limit = longer.get((file, name), LINES)
        if count > limit:
            yield f"{file}.py: the constructor of {name} has {count} lines, at most {limit}"
    for place in longer:
        if lines.get(place, 0) <= LINES:
            yield f"{place[0]}.py: {place[1]} needs no line in LONGER of tools/constructors.py"
