"""`dibber.deposit.gather` between pieces and host memory, and what is to come out of it."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.deposit.gather import Gather
from dibber.interface.description import STATUS

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.hostread import HostRead

FIELDS = ("dat", "bytes", "last", "status")


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


def expected(pieces):
    return bytes(memory(a + i) for a, n in pieces for i in range(n))


def transfers_of(lines):
    """The transfers that left: (bytes, status); every line but the last must be full."""
    result, data = [], b""
    width = max(b for _, b, _, _ in lines)
    for dat, count, last, status in lines:
        if status == STATUS.OK:
            assert last or count == width
            data += dat.to_bytes(32, "little")[:count]
        if last:
            result.append((data, status))
            data = b""
    assert data == b""
    return result


def run(
    transfers,
    data_width=64,
    seed=1,
    busy=1.0,
    out_busy=1.0,
    cycles=12000,
    settle=0,
    extended=1,
    max_request=512,
    crowded=0,
    pulses=None,
    when=None,
    tags=16,
    timeout=400,
    quarantine=2000,
    **host,
):
    """Put transfers (lists of (address, length), None for an error piece) through; (output,
    HostRead).
    """
    dut = Gather(data_width, tags=tags, timeout=timeout, quarantine=quarantine)
    items = []
    for pieces in transfers:
        for n, piece in enumerate(pieces):
            address, length = piece or (0, 0)
            items.append(
                dict(
                    address=address,
                    length=length,
                    error=int(piece is None),
                    last=int(n == len(pieces) - 1),
                )
            )
    random = Random(seed)
    model = HostRead(dut.reads, dut.completions, memory, random, **host)
    lines = []

    def done():
        return sum(last for _, _, last, _ in lines) >= len(transfers)

    def main():
        yield dut.extended_tags.eq(extended)
        yield dut.max_request.eq(max_request)
        yield dut.crowded.eq(crowded)
        yield from finish(done, cycles)
        for _ in range(settle):
            yield

    counts = pulses if pulses is not None else {}

    @passive
    def count():
        while True:
            for name, signal in dut.pulses.items():
                counts[name] = counts.get(name, 0) + (yield signal)
            yield

    run_simulation(
        dut,
        [
            main(),
            count(),
            model.run(),
            source(dut.sink, items, random, busy),
            sink(dut.source, FIELDS, lines, random, out_busy, when),
        ],
    )
    return transfers_of(lines), model
