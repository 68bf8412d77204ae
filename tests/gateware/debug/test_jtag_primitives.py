"""The debug transport behind the FPGAs' own JTAG ports. The primitive is the test: it drives what
comes out of it.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from litex.gen import *

from dibber.debug.transport import DebugTransport
from dibber.phy import jtag

from tests.gateware.models.compiled import run_simulation

DTMCS, DMI = "dtmcs", "dmi"
HALF = 5  # cycles of `sys` for which TCK stays


class Behind(LiteXModule):
    """A port of `kind`, the transport, and `ports`, the signals of its primitive by name."""

    def __init__(self, kind, monkeypatch):
        self.ports = ports = {}

        def instance(name, p_JTAG_CHAIN="", **signals):
            ports.update(
                {
                    port[2:] + (str(p_JTAG_CHAIN) if port == "o_SEL" else ""): signal
                    for port, signal in signals.items()
                }
            )
            return []

        monkeypatch.setattr(jtag, "Instance", instance)
        self.jtag = kind()
        self.transport = DebugTransport()
        self.comb += self.jtag.scan.connect(self.transport.scan)


class ECP5:
    """JTAGG. Its flip-flop for TDI is clocked by TCK's rise."""

    kind = jtag.ECP5JTAG
    tck, tdi, tdo, registered = "JTCK", "JTDI", "JTDO1", True

    @staticmethod
    def levels(state, register):
        inside = state in ("CAPTURE", "SHIFT")
        return {
            "JCE1": inside and register == DTMCS,
            "JCE2": inside and register == DMI,
            "JSHIFT": state == "SHIFT",
            "JUPDATE": state == "UPDATE",
        }


class Xilinx:
    """BSCANE2 of USER3 and USER4."""

    kind = jtag.XilinxJTAG
    tck, tdi, tdo, registered = "TCK", "TDI", "TDO", False

    @staticmethod
    def levels(state, register):
        return {
            "SEL3": register == DTMCS,
            "SEL4": register == DMI,
            "CAPTURE": state == "CAPTURE",
            "SHIFT": state == "SHIFT",
            "UPDATE": state == "UPDATE",
        }


def scan(dut, vendor, late, register, bits, value):
    """From Run-Test/Idle back to it; the state's levels change when TCK rises or, `late`, when it
    falls.
    """
    ports, state, out, n = dut.ports, "IDLE", 0, 0

    def show():
        for name, level in vendor.levels(state, register).items():
            yield ports[name].eq(level)

    for following in ["SELECT", "CAPTURE", *["SHIFT"] * bits, "EXIT1", "UPDATE", "IDLE"]:
        tdi = 0
        if state == "SHIFT":
            out |= (yield ports[vendor.tdo]) << n
            tdi = value >> n & 1
            n += 1
        yield ports[vendor.tck].eq(0)
        if late:
            yield from show()
        if not vendor.registered:
            yield ports[vendor.tdi].eq(tdi)
        for _ in range(HALF):
            yield
        state = following
        yield ports[vendor.tck].eq(1)
        if not late:
            yield from show()
        if vendor.registered:
            yield ports[vendor.tdi].eq(tdi)
        for _ in range(HALF):
            yield
    return out


@pytest.mark.parametrize("late", [False, True], ids=["rise", "fall"])
@pytest.mark.parametrize("vendor", [ECP5, Xilinx])
def test_both_registers_are_scanned_and_accesses_come_out(vendor, late, seed, monkeypatch):
    rng, dut, seen = random.Random(seed), Behind(vendor.kind, monkeypatch), []
    dmi = dut.transport.dmi

    @passive
    def module():
        """Answers each read with its address, three times."""
        while True:
            if (yield dmi.we):
                seen.append(("write", (yield dmi.adr), (yield dmi.dat_w)))
            if (yield dmi.re):
                seen.append(("read", (yield dmi.adr)))
                yield dmi.dat_r.eq((yield dmi.adr) * 0x10101)
            yield

    def debugger():
        assert (yield from scan(dut, vendor, late, DTMCS, 32, 0)) == 1 << 12 | 7 << 4 | 1
        for _ in range(4):
            address, data = rng.getrandbits(7), rng.getrandbits(32)
            yield from scan(dut, vendor, late, DMI, 41, address << 34 | data << 2 | 2)
            assert seen.pop() == ("write", address, data) and not seen
            address ^= 0x55
            yield from scan(dut, vendor, late, DMI, 41, address << 34 | 1)
            assert (
                yield from scan(dut, vendor, late, DMI, 41, 0)
            ) == address << 34 | address * 0x10101 << 2
            assert seen.pop() == ("read", address) and not seen

    run_simulation(dut, [debugger(), module()])
