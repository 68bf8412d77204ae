"""Bounds of the control program's image over all paths: its stack, the instructions of each
handler, and the cycles between two kicks of the watchdog.

    python firmware/bounds.py [build/firmware/64k/mcp.elf]

The bounds come from the machine code, so they include all work of the compiler. The stack of a
function is the depth of its own instructions, plus a callee's where it calls one. Instructions are
those of the longest path, with each loop at its maximum count in LOOPS. These are refused:
recursion, jumps and calls with unknown targets, a loop that LOOPS does not have, and any change of
the stack pointer other than the addition of a constant. A function may begin and end with the code
of frames.S: that is taken as the function's own.

The functions of ALIVE kick the watchdog. A counter or a mask bounds their calls, even if a list has
become a circle. `silence` is the longest path from one kick to the next, in cycles: see CYCLES.
"""

# SPDX-License-Identifier: BSD-2-Clause

import re
import struct
import subprocess
import sys
from functools import cached_property, reduce
from operator import and_, or_
from pathlib import Path

from dibber.interface.description import C

from tools.graphs import components

ROOT = Path(__file__).resolve().parents[1]
IMAGE = ROOT / "build" / "firmware" / "128k" / "mcp.elf"
TOOLS = "riscv64-unknown-elf-"

BRANCHES = {
    *("beq", "bne", "blt", "bge", "bltu", "bgeu", "bgt", "ble", "bgtu", "bleu"),
    *("beqz", "bnez", "blez", "bgez", "bltz", "bgtz"),
}

ENDS = {"ret", "mret", "ebreak"}

# How the names of frames.S begin.
KEEP, RESTORE = "__riscv_save_", "__riscv_restore_"

# The event loop, whose turns are counted one by one, and the functions that it calls.
LOOP = "loop"
HANDLERS = (
    "command_handler",
    "bulk_job_handler",
    "arrival_handler",
    "atomic_handler",
    "replay_handler",
    "replay_timer_handler",
    "message_handler",
    "receive_handler",
    "barrier_handler",
    "restart_step",
    "send_lose_step",
    "scout_handler",
    "scout_step",
    "closing_step",
    "queue_drain",
)


# Functions that an image may lack. Today all images have them.
OPTIONAL = {"restart_step"}

# Bounds of the loops of each source function: the largest number of passes over their heads in one
# call, the first pass included. MCP_PUTS, MCP_BATCH; WAITING of queue.c; REFUSALS of flow.c
PUTS, BATCH, POSTS, REFUSALS = 16, 8, 64, 48
# at most as many wait in a line or lie on a flow,
COMMANDS = C.ENDPOINTS * C.SLOTS
FLOWS = C.LANES * C.NODES
IN_FLOW = COMMANDS + C.SLOTS  # and the answers to requests in the inbox

LOOPS = {
    ("admin.c", "admin_boot"): C.REGIONS,
    ("arrival.c", "arrival_handler"): BATCH,
    ("barrier.c", "barrier_boot"): C.ENDPOINTS,
    ("barrier.c", "barrier_forget"): C.NODES,
    ("barrier.c", "barrier_handler"): C.ENDPOINTS,
    ("barrier.c", "is_over"): C.NODES,
    ("barrier.c", "step"): C.NODES,
    ("bulk.c", "bulk_find"): IN_FLOW,
    ("bulk.c", "bulk_job_handler"): BATCH,
    ("bulk.c", "bulk_restart"): IN_FLOW,
    ("bulk.c", "complete"): BATCH + 1,
    ("bulk.c", "give_up"): IN_FLOW,
    ("bulk.c", "replay"): BATCH + 1,
    ("closing.c", "closing_step"): C.ENDPOINTS,
    ("command.c", "command_boot"): C.ENDPOINTS,
    ("express.c", "end_others"): BATCH + 1,
    ("express.c", "end_puts"): PUTS + 1,
    ("express.c", "begin_anew"): C.WINDOW,
    ("express.c", "give_up"): C.WINDOW,
    ("express.c", "express_puts"): PUTS,
    ("express.c", "requeue"): C.WINDOW,
    ("fast.c", "fast_boot"): FLOWS,
    ("fast.c", "fast_claim_active"): FLOWS,
    ("fast.c", "fast_given"): FLOWS,
    ("fast.c", "fast_take"): C.FAST_PUTS,
    ("fast.c", "fast_tick"): FLOWS,
    ("flow.c", "flow_boot"): FLOWS,
    ("flow.c", "take_refusals"): REFUSALS,
    ("flow.c", "take_turns"): FLOWS,
    ("message.c", "message_lose"): COMMANDS,
    ("message.c", "message_restarted"): COMMANDS,
    ("message.c", "message_tick"): C.NODES * (1 + 2),  # ASKS
    ("operations.c", "message_handler"): C.SLOTS,
    ("operations.c", "take_in_turn"): BATCH,
    ("put.c", "check_walk"): C.LEVELS,
    ("queue.c", "queue_drain"): POSTS,
    ("receive.c", "leave_turn"): COMMANDS,
    ("receive.c", "receive_handler"): COMMANDS,
    ("receive.c", "receive_probe"): C.NODES,
    ("replay.c", "come_back"): FLOWS,
    ("replay.c", "replay_timer_handler"): FLOWS,
    ("replay.c", "take_link"): FLOWS,
    ("replay.c", "take_naks"): FLOWS,
    ("requests.c", "forget_all"): COMMANDS,
    ("requests.c", "request_boot"): C.NODES,
    ("routes.c", "routes_boot"): C.NODES,
    ("routes.c", "routes_tick"): C.NODES,
    ("routes.c", "usable"): C.ROUTES,
    ("send.c", "drop_former"): C.SLOTS,
    ("send.c", "leave"): COMMANDS,
    ("send.c", "lose_readies"): C.SLOTS,
    ("send.c", "send_close_step"): C.SLOTS,
    ("send.c", "send_lose_step"): COMMANDS,
    ("send.c", "send_unready"): C.SLOTS,
    ("send.c", "take_oldest"): COMMANDS,
}

# Functions without a loop in which a caller's loop may end.
STRAIGHT = {
    ("fast.c", "adopt"),
    ("fast.c", "packets_of_entry"),
    ("queue.c", "post"),
    ("registers.h", "bus_read"),
    ("registers.h", "bus_write"),
    ("sets.h", "set_add"),
    ("sets.h", "set_bit"),
    ("sets.h", "set_has"),
    ("sets.h", "set_remove"),
    ("sets.h", "set_take"),
    ("sets.h", "set_take_of"),
    ("sets.h", "set_word"),
}

# Largest number of calls of each of these in one call of a handler, over all its paths. Each flow
# can be claimed once, because it is armed again only when a put of this program has ended on it.
# The gateware's queues hold 32 refusals.
AT_MOST = {"fast_take": FLOWS, "refusal": REFUSALS}


# Source functions that write WATCHDOG.
ALIVE = {"mcp_boot", "mcp_alive", "loop"}

# Largest number of cycles of an instruction, without its fetch, as
# tests/gateware/mcp/test_cycles.py finds them. A load may miss the data cache, which costs a line
# of 8 words; registers and slots take less. A branch may be mispredicted, and a result may be late.
LINE = 20
# The event loop's own loads of registers wait for an event, so many cycles at most.
HOLD = C.EVENTS_HOLD
CYCLES = {"load": LINE, "store": 4, "jump": 4, "multiply": 4, "divide": 40, "csr": 4, "other": 2}
KINDS = {
    **dict.fromkeys(("lw", "lh", "lhu", "lb", "lbu"), "load"),
    **dict.fromkeys(("sw", "sh", "sb"), "store"),
    **dict.fromkeys((*BRANCHES, "j", "jal", "jr", "jalr", "ret"), "jump"),
    **dict.fromkeys(("mul", "mulh", "mulhu", "mulhsu"), "multiply"),
    **dict.fromkeys(("div", "divu", "rem", "remu"), "divide"),
    **dict.fromkeys(("csrr", "csrw", "rdcycle", "rdinstret", "fence.i", ".insn"), "csr"),
}
# of the instruction cache, which has a place for each line. Each line is fetched once, because the
# watchdog is kicked after `fence.i`
LINE_BYTES = 32


class Ways:
    """The longest of a set of paths through code, in cycles; -inf if there is no path of a kind.

    Attributes
    ----------
    through : without a write of WATCHDOG
    before  : from the start to the first write
    behind  : from the last write to the end
    between : from one write to the next
    """

    NONE = float("-inf")

    def __init__(self, through=NONE, before=NONE, behind=NONE, between=NONE):
        self.through, self.before, self.behind, self.between = through, before, behind, between

    def __add__(self, other):
        """One path, then the other."""
        return Ways(
            self.through + other.through,
            max(self.before, self.through + other.before),
            max(other.behind, self.behind + other.through),
            max(self.between, other.between, self.behind + other.before),
        )

    def __or__(self, other):
        """Either of two paths."""
        return Ways(*map(max, self.parts, other.parts))

    def __and__(self, other):
        """The smaller bounds, if both hold for the same paths."""
        return Ways(*map(min, self.parts, other.parts))

    def __mul__(self, n):
        """From one to n passes."""
        quiet = max(self.through, 0)
        again = self.behind + max(n - 2, 0) * quiet + self.before if n > 1 else self.NONE
        return Ways(
            n * quiet if self.through >= 0 else self.NONE,
            self.before + (n - 1) * quiet,
            self.behind + (n - 1) * quiet,
            max(self.between, again),
        )

    @property
    def parts(self):
        return self.through, self.before, self.behind, self.between

    @property
    def longest(self):
        return max(self.parts)


EMPTY = Ways(0)


class Unbounded(Exception):
    """The reason why there is no bound."""


class Image:
    """The instructions of an image.

    Attributes
    ----------
    code     : dict address -> (mnemonic, operands)
    symbols  : dict name -> address; functions, and the linker script's symbols
    starts   : dict address -> name of the function that begins there
    """

    def __init__(self, path=IMAGE):
        self.path = path
        self.symbols = {
            name: int(address, 16)
            for address, name in (
                line.split()[::2]
                for line in self._tool("nm").splitlines()
                if len(line.split()) == 3
            )
        }
        self.starts = {}
        self.code = {}
        for line in self._tool("objdump", "-d", "--no-show-raw-insn", "-j", ".text").splitlines():
            if start := re.match(r"([0-9a-f]{8}) <(.*)>:$", line):
                self.starts[int(start[1], 16)] = start[2]
            elif instruction := re.match(r"\s+([0-9a-f]+):\t(\S+)(?:\t(.*))?$", line):
                operands = (instruction[3] or "").split("#")[0].split("<")[0].strip().split(",")
                self.code[int(instruction[1], 16)] = instruction[2], operands

    def _tool(self, name, *arguments):
        return subprocess.run(
            [TOOLS + name, *arguments, str(self.path)], check=True, capture_output=True, text=True
        ).stdout

    @cached_property
    def words(self):
        """The first section's words."""
        binary = self.path.with_suffix(".bounds.bin")
        subprocess.run(
            [TOOLS + "objcopy", "-O", "binary", "-j", ".text", str(self.path), str(binary)],
            check=True,
        )
        content = binary.read_bytes()
        binary.unlink()
        return struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4])

    def inlined(self, addresses):
        """The source functions of each address, the innermost first."""
        out = subprocess.run(
            [
                TOOLS + "addr2line",
                "-a",
                "-f",
                "-i",
                "-s",
                "-e",
                str(self.path),
                *map(hex, addresses),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        found, address = {}, None
        for line in out:
            if re.fullmatch(r"0x[0-9a-f]{8}", line):
                address = int(line, 16)
                found[address], name = [], None
            elif name is None:
                name = line
            else:
                found[address].append((line.split(":")[0], name))
                name = None
        return found

    def table(self, address):
        """Targets of `jr` in gcc's code for a switch: `li`, `bltu` to the default, base (near `gp`
        or 0 one instruction), sum, `lw`, `jr`.
        """
        register, values, limit, base = self.code[address][1][0], {}, None, None
        for at in range(address - 4 * 20, address, 4):
            mnemonic, operands = self.code.get(at, ("", [""]))
            if mnemonic == "li":
                values[operands[0]] = int(operands[1], 0)
            elif mnemonic == "lui":
                values[operands[0]] = int(operands[1], 0) << 12
            elif mnemonic == "bltu":
                limit = values.get(operands[0])
            elif (
                mnemonic in ("add", "addi")
                and operands[0] == operands[1]
                and re.fullmatch(r"-?\d+", operands[2])
            ):
                if operands[0] in values:
                    base = values[operands[0]] = values[operands[0]] + int(operands[2])
            elif mnemonic == "add" and operands[0] == operands[1] and operands[2] in values:
                base = values[operands[2]]
            elif mnemonic in ("add", "addi") and operands[1] == "gp":
                base = self.symbols["__global_pointer$"] + int(operands[2])
        if (
            limit is None
            or base is None
            or self.code[address - 4] != ("lw", [register, f"0({register})"])
        ):
            raise Unbounded(f"jump at 0x{address:x} to nobody knows where")
        targets = set(self.words[base // 4 : base // 4 + limit + 1])
        if not targets <= self.code.keys():
            raise Unbounded(f"no table of jumps at 0x{base:x}")
        return targets

    def along(self, address):
        """The addresses of an instruction and of those that keep registers, if it calls them."""
        mnemonic, operands = self.code[address]
        if mnemonic != "jal" or operands[0] != "t0":
            return [address]
        at, found = int(operands[1], 16), [address]
        if not self.starts.get(at, "").startswith(KEEP):
            raise Unbounded(f"jal {','.join(operands)} at 0x{address:x}")
        while self.code.get(at, ("", ())) != ("jr", ["t0"]):
            mnemonic, operands = self.code.get(at, ("", [""]))
            if mnemonic != "sw" and (mnemonic not in ("add", "addi") or operands[0] != "sp"):
                raise Unbounded(f"0x{at:x} does more than keep registers")
            found.append(at)
            at += 4
        return [*found, at]

    def step(self, address, begin):
        """(following addresses, called function or None) of an instruction of the function that
        begins at `begin`.

        A jump to the start of another function is a tail call. A jump to the start of this
        function is a loop. If a path enters another function at another place, the code there
        belongs to both. The compiler puts `ebreak` at unreachable places. start.S's trap, without a
        stack, does not return from it.
        """
        mnemonic, operands = self.code[address]
        after = address + 4
        if mnemonic in BRANCHES:
            return {after, int(operands[-1], 16)}, None
        if mnemonic in ENDS:
            return set(), None
        if mnemonic == "j":
            target = int(operands[0], 16)
            name = self.starts.get(target, RESTORE)
            tail = target != begin and not name.startswith(RESTORE)
            return (set(), target) if tail else ({target}, None)
        if mnemonic == "jal" and len(operands) == 1 and int(operands[0], 16) in self.starts:
            return {after}, int(operands[0], 16)
        if len(self.along(address)) > 1:
            return {after}, None
        if mnemonic == "jr" and operands[0] != "ra":
            return self.table(address), None
        if mnemonic in ("jal", "jalr", "jr"):
            raise Unbounded(f"{mnemonic} {','.join(operands)} at 0x{address:x}")
        return {after}, None


class Function:
    """Graph of the function at `start`.

    Attributes
    ----------
    edges : dict address -> set of the following addresses
    calls : dict address -> address of the function that is called there
    depth : dict address -> bytes of stack in use after it
    ends  : whether it returns
    """

    def __init__(self, image, start, returns):
        """`returns`: function from the start of another function to whether it returns. No address
        follows a call of a function that does not return.
        """
        self.start, self.edges, self.calls, self.depth, self.ends = start, {}, {}, {}, False
        todo = [(start, 0)]
        while todo:
            address, depth = todo.pop()
            if address not in image.code or image.code[address][0].startswith("."):
                raise Unbounded(f"no instruction at 0x{address:x}")
            behind = depth + sum(self._moved(image, at) for at in image.along(address))
            if address in self.edges:
                if self.depth[address] != behind:
                    raise Unbounded(f"the stack at 0x{address:x} depends on the way there")
                continue
            self.depth[address] = behind
            self.edges[address], called = image.step(address, start)
            if called is not None:
                self.calls[address] = called
            if called is not None and not returns(called):
                self.edges[address] = set()
            elif not self.edges[address] and image.code[address][0] != "ebreak":
                self.ends = True
                if self.depth[address]:
                    raise Unbounded(f"the stack is not as it was behind 0x{address:x}")
            todo += [(n, self.depth[address]) for n in self.edges[address]]

    @staticmethod
    def _moved(image, address):
        """Bytes by which an instruction makes the stack deeper."""
        mnemonic, operands = image.code[address]
        if operands[0] != "sp" or mnemonic in ("sw", "sh", "sb") or mnemonic in BRANCHES:
            return 0
        if (
            mnemonic not in ("add", "addi")
            or operands[1] != "sp"
            or not re.fullmatch(r"-?\d+", operands[2])
        ):
            raise Unbounded(f"{mnemonic} {','.join(operands)} at 0x{address:x}")
        return -int(operands[2])


class Bounds:
    """Stack and instructions of an image's functions, by their addresses."""

    def __init__(self, image):
        self.image = image
        self.functions, self.stacks, self.costs, self.through, self.reading = {}, {}, {}, {}, set()

    def function(self, start):
        if start not in self.functions:
            self.reading.add(start)
            try:
                self.functions[start] = Function(self.image, start, self._returns)
            finally:
                self.reading.remove(start)
        return self.functions[start]

    def _returns(self, start):
        """Whether a function returns. It is not known while the function is being read; that is
        recursion, which `stack` refuses.
        """
        return start in self.reading or self.function(start).ends

    def stack(self, start, above=()):
        """Bytes of stack of a function with its callees."""
        if start in above:
            raise Unbounded(" calls ".join(self.image.starts[a] for a in (*above, start)))
        if start not in self.stacks:
            function = self.function(start)
            self.stacks[start] = max(
                *function.depth.values(),
                0,
                *(
                    function.depth[at] + self.stack(called, (*above, start))
                    for at, called in function.calls.items()
                ),
            )
        return self.stacks[start]

    def way(self, start):
        """The functions on the path to the deepest place, with the stack of each."""
        function, deepest = self.function(start), self.stack(start)
        for at, called in function.calls.items():
            if function.depth[at] + self.stack(called) == deepest:
                return [(self.image.starts[start], function.depth[at]), *self.way(called)]
        return [(self.image.starts[start], deepest)]

    # Instructions ---------------------------------------------------------------------------------

    def handler(self, start):
        """Bound of the instructions in one call of a handler, with those of AT_MOST. `stack` has
        found that there is no recursion.
        """
        return self.cost(start) + self._rest(self._reached(start))

    def _reached(self, start, known=()):
        """The direct and indirect callees of a function."""
        found = set(known) | {start}
        for called in set(self.function(start).calls.values()) - found:
            found |= self._reached(called, found)
        return found

    def _rest(self, reached):
        return sum(
            n * self.cost(self.image.symbols[name])
            for name, n in AT_MOST.items()
            if self.image.symbols[name] in reached
        )

    def cost(self, start):
        """Bound of the instructions of a function, without its callees in AT_MOST."""
        if start not in self.costs:
            function = self.function(start)
            self.costs[start] = self._longest(function, function.edges, start)
        return self.costs[start]

    def _longest(self, function, edges, entry, within=()):
        """Bound over the paths through a graph that begin at `entry`."""
        best, where = {}, {}
        groups = [set(part) for part in components(edges)]  # followers come first
        for number, group in enumerate(groups):
            where |= dict.fromkeys(group, number)
        for number, group in enumerate(groups):
            leave = max(
                (best[where[n]] for a in group for n in edges[a] if where[n] != number), default=0
            )
            first = next(iter(group))
            if len(group) == 1 and first not in edges[first]:
                best[number] = self._instruction(function, first) + leave
            else:
                best[number] = self._loop(function, edges, group, entry, within) + leave
        return best[where[entry]]

    def _instruction(self, function, address):
        called = function.calls.get(address)
        return len(self.image.along(address)) + (
            0 if called is None or self.image.starts[called] in AT_MOST else self.cost(called)
        )

    def _loop(self, function, edges, group, entry, within):
        """Without the edges back to its head, the content of a loop is a graph with fewer loops.

        A compiler may let a loop begin in its middle. Then it has several heads, and the first pass
        is not counted. It may split one loop into several; then all of them together have the
        number of passes of that one.
        """
        heads = {n for a in edges.keys() - group for n in edges[a] if n in group} | (
            {entry} & group
        )
        costs = []
        for head in heads:
            latches = [a for a in group if head in edges[a]]
            inside = {a: {n for n in edges[a] if n in group and n != head} for a in group}
            if latches:
                place = self._place(latches)
                longest = max(
                    self._longest(function, inside, start, (*within, place)) for start in heads
                )
                costs.append(longest * ((1 if place in within else LOOPS[place]) + len(heads) - 1))
        return min(costs)

    def _place(self, latches):
        """The loop belongs to the innermost source function that has all edges back."""
        of = self.image.inlined(latches)
        for place in of[latches[0]]:
            if place not in STRAIGHT and all(place in of[latch] for latch in latches):
                if place in LOOPS:
                    return place
                break
        raise Unbounded(f"no bound of the loop that ends at 0x{latches[0]:x}, of {of[latches[0]]}")

    # Silence --------------------------------------------------------------------------------------

    @cached_property
    def kicks(self):
        """Addresses of the stores to WATCHDOG."""
        stores = [a for a, (mnemonic, _) in self.image.code.items() if mnemonic == "sw"]
        return {
            a
            for a, of in self.image.inlined(stores).items()
            if len(of) == 2
            and of[0] == ("registers.h", "bus_write")
            and of[1][0] in ("main.c", "runtime.c")
            and of[1][1] in ALIVE
        }

    @cached_property
    def held(self):
        """Addresses of the event loop's own loads of registers, which hardware may hold. Raises
        Unbounded when there are none: then the image is not that of a program that waits.
        """
        loads = [a for a, (mnemonic, _) in self.image.code.items() if mnemonic == "lw"]
        found = {
            a
            for a, of in self.image.inlined(loads).items()
            if of == [("registers.h", "bus_read"), ("main.c", LOOP)]
        }
        if LOOP in self.image.symbols and not found:
            raise Unbounded("the event loop waits nowhere")
        return found

    def ways(self, start):
        """Bounds of the paths through a function."""
        if start not in self.through:
            function = self.function(start)
            self.through[start] = self._ways(function, function.edges, start)
        return self.through[start]

    def _ways(self, function, edges, entry, within=(), stops=()):
        """Bounds of the paths through a graph that begin at `entry`, and end where no address
        follows or at one of `stops`.
        """
        best, where = {}, {}
        groups = [set(part) for part in components(edges)]
        for number, group in enumerate(groups):
            where |= dict.fromkeys(group, number)
        for number, group in enumerate(groups):
            leave = [best[where[n]] for a in group for n in edges[a] if where[n] != number]
            if not leave or any(a in stops or not edges[a] for a in group):
                leave.append(EMPTY)
            first = next(iter(group))
            alone = len(group) == 1 and first not in edges[first]
            best[number] = (
                self._step(function, first)
                if alone
                else self._rounds(function, edges, group, entry, within)
            ) + reduce(or_, leave)
        return best[where[entry]]

    def _step(self, function, address):
        if address in self.kicks:
            return Ways(before=CYCLES["store"], behind=0)
        cycles = sum(
            CYCLES[KINDS.get(self.image.code[at][0], "other")] for at in self.image.along(address)
        )
        own = Ways(cycles + HOLD if address in self.held else cycles)
        called = function.calls.get(address)
        return own if called is None else own + self.ways(called)

    def _rounds(self, function, edges, group, entry, within):
        """As `_loop`; a pass may end wherever the loop can be left or started again."""
        heads = {n for a in edges.keys() - group for n in edges[a] if n in group} | (
            {entry} & group
        )
        found = []
        for head in heads:
            latches = [a for a in group if head in edges[a]]
            inside = {a: {n for n in edges[a] if n in group and n != head} for a in group}
            stops = {a for a in group if inside[a] != set(edges[a])}
            if latches:
                place = self._place(latches)
                once = reduce(
                    or_,
                    (
                        self._ways(function, inside, start, (*within, place), stops)
                        for start in heads
                    ),
                )
                found.append(once * ((1 if place in within else LOOPS[place]) + len(heads) - 1))
        return reduce(and_, found)

    def silence(self, start):
        """Cycles without a kick in a call of a function, with one fetch of each line."""
        return self.ways(start).longest + self.fetches

    @property
    def fetches(self):
        return LINE * -(-4 * len(self.image.code) // LINE_BYTES)

    def silent_turn(self):
        """The same for any turn of the event loop, and for the code before the first turn."""
        function = self.function(self.image.symbols[LOOP])
        begins = self.kicks & function.edges.keys()
        edges = {a: set() if a in begins else n for a, n in function.edges.items()}
        turns = [self._ways(function, edges, n) for a in begins for n in function.edges[a]]
        boot = self.ways(self.image.symbols["mcp_boot"]) + self._ways(
            function, edges, function.start
        )
        return max(boot.behind, boot.between, *(ways.longest for ways in turns)) + self.fetches

    def turn(self):
        """Bound of the instructions of a turn of the event loop: from one of its writes of WATCHDOG
        to the next.
        """
        function = self.function(self.image.symbols[LOOP])
        begins = self.kicks & function.edges.keys()
        if not begins:
            raise Unbounded("the event loop does not write WATCHDOG")
        edges = {a: set() if a in begins else n for a, n in function.edges.items()}
        return max(
            self._longest(function, edges, n) for a in begins for n in function.edges[a]
        ) + self._rest(self._reached(function.start))


# Report -------------------------------------------------------------------------------------------


def report(path=IMAGE):
    """[(function, stack, instructions, cycles of silence)] of start, event loop and handlers, and
    (stack in use, available stack)."""
    image = Image(path)
    bounds = Bounds(image)
    stack = bounds.stack(image.symbols["main"])
    rows = [
        (name, bounds.stack(start), bounds.handler(start), bounds.silence(start))
        for name in ("mcp_boot", *HANDLERS)
        if name in image.symbols or name not in OPTIONAL
        for start in [image.symbols[name]]
    ]
    return [
        *rows,
        (
            f"{LOOP}, one turn",
            bounds.stack(image.symbols[LOOP]),
            bounds.turn(),
            bounds.silent_turn(),
        ),
    ], (stack, image.symbols["stack_top"] - image.symbols["bss_end"])


def table(rows):
    """Lines in Markdown."""
    return [
        "| function | stack, bytes | instructions | cycles of silence |",
        "|---|---|---|---|",
        *(
            f"| `{name}` | {stack} | {instructions:,} | {cycles:,} |"
            for name, stack, instructions, cycles in rows
        ),
    ]


def main():
    rows, (used, there) = report(*map(Path, sys.argv[1:2]))
    print(*table(rows), sep="\n")
    print(f"\n{used} of {there} bytes of stack")


if __name__ == "__main__":
    main()
