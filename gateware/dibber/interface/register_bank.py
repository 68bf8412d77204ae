"""A register bank of the interface description, as gateware."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.interface.readback import ReadBack

# Line Port ----------------------------------------------------------------------------------------

def line_port(data_width, address_bits=20):
    """The port through which the host accesses a memory or a register bank.

    One access is one line of `data_width` bits; `adr` counts lines. A write (`we`, bytes by `be`)
    is always taken at once, so an inbound posted write never waits. A read (`re`) is taken in a
    cycle in which `we` is 0. `dat_r` is valid exactly 2 cycles later; `be` tells which bytes of the
    line are read. In all other cycles `dat_r` is 0 where several ports share one return path.
    """
    return Record([
        ("adr",   address_bits),
        ("dat_w", data_width),
        ("be",    data_width//8),
        ("we",    1),
        ("re",    1),
        ("dat_r", data_width),
    ])

def connect_lines(master, *slaves):
    """Statements that connect a line port to one slave, or to several; of several, each reads as 0
    in cycles in which another one is asked.
    """
    return [
        *[getattr(slave, name).eq(getattr(master, name)) for slave in slaves for name in ["adr", "dat_w", "be", "we", "re"]],
        master.dat_r.eq(reduce(or_, [slave.dat_r for slave in slaves])),
    ]

# Register Bank ------------------------------------------------------------------------------------

class RegisterBank(LiteXModule):
    """The registers of one `Bank` behind a line port of 32, 64, 128 or 256 bits.

    Parameters
    ----------
    bank       : schema.Bank
    data_width : bits of the port
    omit       : names of "ro" registers that another block answers; they read as 0 here
    indexed    : names of "ro" registers that are looked up one word at a time; for ports of 32
                 bits. A tuple of names is looked up together; these registers must be consecutive
    readback   : "rw" is read from memory, so that unused bits need no registers and no path to
                 `dat_r`. For a bank that is reset only with `sys`; see ReadBack for its limits
    single     : names of "w1c" registers with only bit 0; synthesis does not see that the other
                 bits are never set
    whole      : ignore writes without all four byte enables. Without this each register needs a
                 clock enable for each byte

    Attributes
    ----------
    port          : line_port(data_width), from the bank's first byte
    status        : dict name -> list of Signal(32), one for each of `count`. "ro": drive the value;
                    "w1c": drive the bits to set. An `indexed` register has one signal, for the word
                    at `index`, in the same cycle; a tuple is listed under its first name
    index         : dict name -> Signal, of the `indexed` registers
    storage       : dict name -> list of Signal(32); "rw", "wk" and "w1c": the value
    strobe        : dict name -> list of Signal(); "rw", "wk" and "wo": one cycle, with `written`
                    valid
    written       : dict name -> list of Signal(32); "rw" and "wk": the same as `storage`; "wo": the
                    value, only in the cycle of the strobe, because all registers share it
    read          : dict name -> list of Signal(); one cycle when the register is read, as `be` of
                    the port tells; never for "wk", "wo" and registers that are read from memory

    "rw" and "wk" use the byte enables; a "wo" write needs all four. Writes to "ro" are ignored.
    `dat_r` is 0 if there was no read 2 cycles before. "wk" saves the wires to `dat_r` for values
    that are never read back. `strobe` comes one cycle after the write, when `storage` has the new
    value. "w1c" is set and cleared one cycle later; a read after the write sees the new value.
    """
    def __init__(
        self, bank, data_width=32, omit=(), indexed=(), single=(), readback=False, whole=False):
        self.port    = port = line_port(data_width)
        self.status  = {}
        self.storage = {}
        self.strobe  = {}
        self.written = {}
        self.read    = {}
        self.index   = {}

        # # #

        lanes  = data_width//32
        values = {}  # word index -> Signal(32) to be read
        reads  = {}
        looks  = []  # values of looked-up words, gated by their read
        if readback:
            self.readback = ReadBack(
                [
                    r.offset//4 + i for r in bank.registers if r.access == "rw"
                    for i in range(r.count)],
                port)
            last = self.readback.dat
        else:
            last = Signal(data_width)  # what was written
            self.sync += last.eq(port.dat_w)
        groups = [[name] if isinstance(name, str) else name for name in indexed]
        counts = {group[0]: sum(bank[name].count for name in group) for group in groups}
        joined = {name for group in groups for name in group[1:]}
        for r in bank.registers:
            if r.name in omit or r.name in joined:
                continue
            if r.name in counts:
                assert lanes == 1 and r.access == "ro"
                count  = counts[r.name]
                index  = Signal(max=count, name=f"index_{r.name.lower()}")
                asked  = Signal(name=f"asked_{r.name.lower()}")
                status = Signal(32, name=f"status_{r.name.lower()}")
                self.sync += [
                    index.eq(port.adr - r.offset//4),
                    asked.eq(
                        port.re & ~port.we & (port.adr >= r.offset//4) &
                        (port.adr < r.offset//4 + count)),
                ]
                looks.append(status & Replicate(asked, 32))
                self.index[r.name]  = index
                self.status[r.name] = [status]
                continue
            for i in range(r.count):
                word       = r.offset//4 + i
                line, lane = divmod(word, lanes)
                suffix     = f"{r.name.lower()}{i if r.count > 1 else ''}"
                hit        = Signal(name=f"hit_{suffix}")
                read       = Signal(name=f"read_{suffix}")
                be         = port.be[4*lane:4*lane + 4]
                dat        = port.dat_w[32*lane:32*lane + 32]
                self.comb += hit.eq(
                    port.we & (port.adr == line) &
                    (be == 0xf if whole or r.access == "wo" else be != 0))
                parts      = [(hit, slice(0, 32))] if whole else [
                    (hit & be[b], slice(8*b, 8*b + 8)) for b in range(4)]
                reads[word] = read
                self.read.setdefault(r.name, []).append(read)
                if r.access == "ro":
                    status = Signal(32, name=f"status_{suffix}")
                    self.status.setdefault(r.name, []).append(status)
                    values[word] = status
                    continue
                if r.access == "w1c":
                    # A bit that is set in the cycle of its clearing stays set. Both happen one
                    # cycle later, because the written data are late; a read after that sees the
                    # new value.
                    kept    = 1 if r.name in single else 32
                    status  = Signal(32, name=f"set_{suffix}")
                    storage = Signal(32, name=f"storage_{suffix}")
                    came    = Signal(kept, name=f"came_{suffix}")
                    clear   = Signal(32, name=f"clear_{suffix}")
                    done    = last[32*lane:32*lane + 32]
                    for taken, bits in parts:
                        was = Signal()
                        self.sync += was.eq(taken)
                        self.comb += If(was, clear[bits].eq(done[bits]))
                    self.sync += [
                        came.eq(status),
                        storage[:kept].eq((storage[:kept] & ~clear[:kept]) | came),
                    ]
                    self.status.setdefault(r.name, []).append(status)
                    self.storage.setdefault(r.name, []).append(storage)
                    values[word] = storage
                    continue
                strobe = Signal(name=f"strobe_{suffix}")
                self.sync += strobe.eq(hit)
                self.strobe.setdefault(r.name, []).append(strobe)
                if r.access in ("rw", "wk"):
                    storage = Signal(32, reset=r.reset, name=f"storage_{suffix}")
                    self.sync += [If(taken, storage[bits].eq(dat[bits])) for taken, bits in parts]
                    self.storage.setdefault(r.name, []).append(storage)
                    self.written.setdefault(r.name, []).append(storage)
                    if r.access == "rw" and not readback:
                        values[word] = storage
                    elif r.access == "rw" and r.reset:
                        # The memory has the written value; after a reset it has 0 in place of
                        # `r.reset`.
                        values[word] = storage & r.reset
                else:
                    self.written.setdefault(r.name, []).append(last[32*lane:32*lane + 32])

        # Read, 2 cycles: the address decoder is registered, one bit a line; then the lines are
        # ORed.
        be = Signal(len(port.be))
        self.sync += be.eq(port.be)
        lines = {}
        for word, value in values.items():
            line, lane = divmod(word, lanes)
            lines.setdefault(line, [Constant(0, 32)]*lanes)[lane] = value
        asked = {line: Signal(name=f"asked{line}") for line in lines}
        for word in values:
            line, lane = divmod(word, lanes)
            self.comb += reads[word].eq(asked[line] & (be[4*lane:4*lane + 4] != 0))
        answer = Signal(data_width) if readback else port.dat_r
        if readback:
            self.comb += port.dat_r.eq(answer | self.readback.dat_r)
        self.sync += [
            *[asked[line].eq(port.re & ~port.we & (port.adr == line)) for line in lines],
            answer.eq(
                reduce(
                    or_,
                    looks + [
                        Cat(*parts) & Replicate(asked[line], data_width)
                        for line, parts in lines.items()])),
        ]

    def fields(self, bank, name, index=0):
        """Slices of a register's signal by field name; "ro": to drive, "rw", "wk" and "wo": to use.
        """
        signal = (self.status.get(name) or self.written.get(name))[index]
        return {f.name: signal[f.lsb:f.lsb + f.bits] for f in bank[name].fields}
