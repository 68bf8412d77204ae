# SPDX-License-Identifier: BSD-2-Clause

import pytest
from migen import *

from dibber.common.code_identity import code_crc
from dibber.interface.description import C, COUNTERS, HOST, INTERFACE, MCP_STATE
from dibber.layouts import SHOWN
from dibber.mcp.host_registers import HostRegisters, collect_counters

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.lines import LineDriver


def build(data_width=128, **options):
    pulses = {name: Signal(name=name.lower()) for name, _ in COUNTERS}
    dut = HostRegisters(data_width, 125e6, pulses, **options)
    return dut, LineDriver(dut.port), pulses


@pytest.mark.parametrize(
    "data_width, endpoints, sram", [(64, C.ENDPOINTS, 128), (64, 4, 64), (128, C.ENDPOINTS, 256)]
)
def test_the_card_says_what_it_is(data_width, endpoints, sram):
    dut, driver, _ = build(data_width, endpoints=endpoints, sram_bytes=sram * 1024)

    def bench():
        for name, value in [
            ("MAGIC", C.MAGIC),
            ("INTERFACE_VERSION", INTERFACE.version_word),
            ("INTERFACE_HASH", INTERFACE.hash),
            ("BUILD", code_crc()),
            ("CLOCK_HZ", 125_000_000),
            ("DATA_WIDTH", data_width),
            ("SRAM", sram | (35 if sram == 64 else sram // 2) << 16),
        ]:
            assert (yield from driver.read(HOST[name].offset)) == value, name
        geometry = yield from driver.read(HOST["GEOMETRY"].offset)
        for field, value in zip(HOST["GEOMETRY"].fields, [endpoints, C.SLOTS, C.REGIONS, C.NODES]):
            assert geometry >> field.lsb & (1 << field.bits) - 1 == value

    run_simulation(dut, bench())


@pytest.mark.parametrize("data_width", [32, 64, 128, 256])
def test_what_is_rw_reads_as_written_and_nothing_else_can_be_written(data_width):
    dut, driver, _ = build(data_width, board="a board")
    words = {
        r.offset + 4 * i: r
        for r in HOST.registers
        for i in range(r.count)
        if not r.name.startswith("CYCLES")
    }

    def bench():
        before = {}
        for address, register in words.items():
            before[address] = yield from driver.read(address)
            if register.access == "rw":
                assert before[address] == register.reset
        for address, register in words.items():
            if register.access != "wo":
                yield from driver.write(address, 0xA5C35A3C ^ address)
        for address, register in words.items():
            expected = 0xA5C35A3C ^ address if register.access == "rw" else before[address]
            if register.name == "LINK_STATUS" or register.name == "MCP_STATE":
                continue
            assert (yield from driver.read(address)) == expected, register.name

    run_simulation(dut, bench())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_the_control_program_sees_what_the_host_wrote(data_width):
    dut, driver, _ = build(data_width)

    def bench():
        for number, name in enumerate(SHOWN):
            yield from driver.write(HOST[name].offset, 0x600D0000 + number)
        yield from driver.write(HOST["ADMIN_CQ_HIGH"].offset, 0xABCD1234, 0b0110)
        for number, name in enumerate(SHOWN):
            yield dut.shown.index.eq(number)
            yield
            yield
            assert (yield dut.shown.value) == (
                0x60CD1202 if name == "ADMIN_CQ_HIGH" else 0x600D0000 + number
            )
        assert (yield dut.shown.clock_hz) == 125_000_000

    run_simulation(dut, bench())


def test_the_high_word_of_the_clock_belongs_to_the_low_word_read_before():
    dut, driver, _ = build()

    def bench():
        yield dut.cycles.eq(0x5_FFFF_FFFC)
        yield
        low = yield from driver.read(HOST["CYCLES_LOW"].offset)
        assert low > 0xFFFF_FFF0
        for _ in range(8):
            yield
        assert (yield dut.cycles) >> 32 == 6
        assert (yield from driver.read(HOST["CYCLES_HIGH"].offset)) == 5
        assert (yield from driver.read(HOST["CYCLES_LOW"].offset)) < low
        assert (yield from driver.read(HOST["CYCLES_HIGH"].offset)) == 6

    run_simulation(dut, bench())


def test_state_and_identity_show_only_while_the_program_runs():
    dut, driver, _ = build()

    def bench():
        yield dut.mcp_state.eq(MCP_STATE.IDLE)
        yield dut.mcp_identity.eq(0xABCD)
        yield
        assert (yield from driver.read(HOST["MCP_STATE"].offset)) == MCP_STATE.RESET
        assert (yield from driver.read(HOST["MCP_IDENTITY"].offset)) == 0
        yield from driver.write(HOST["MCP_CONTROL"].offset, 1)
        assert (yield from driver.read(HOST["MCP_STATE"].offset)) == MCP_STATE.IDLE
        assert (yield from driver.read(HOST["MCP_IDENTITY"].offset)) == 0xABCD

    run_simulation(dut, bench())


@pytest.mark.parametrize(
    "state, lost, shown",
    [("COMMAND", 0, "WATCHDOG"), ("TRAP", 0, "TRAP"), ("COMMAND", 1, "BUS_MASTER")],
)
def test_a_bitten_program_is_halted_and_says_why_until_the_host_halts_it(state, lost, shown):
    dut, driver, _ = build()

    def bench():
        yield from driver.write(HOST["MCP_CONTROL"].offset, 1)
        yield dut.mcp_state.eq(getattr(MCP_STATE, state))
        yield dut.mcp_identity.eq(0xABCD)
        yield dut.bite.eq(1)
        yield dut.lost.eq(lost)
        yield
        yield dut.bite.eq(0)
        yield dut.lost.eq(0)
        yield
        assert not (yield dut.run)
        yield dut.mcp_state.eq(MCP_STATE.RESET)  # its registers are reset with it
        assert (yield from driver.read(HOST["MCP_STATE"].offset)) == getattr(MCP_STATE, shown)
        assert (yield from driver.read(HOST["MCP_IDENTITY"].offset)) == 0
        yield from driver.write(HOST["MCP_CONTROL"].offset, 1)
        yield
        assert not (yield dut.run), "who has not seen it does not start it again"
        yield from driver.write(HOST["MCP_CONTROL"].offset, 0)
        assert (yield from driver.read(HOST["MCP_STATE"].offset)) == MCP_STATE.RESET
        yield from driver.write(HOST["MCP_CONTROL"].offset, 1)
        yield
        assert (yield dut.run)

    run_simulation(dut, bench())


def test_each_counter_counts_its_own_pulses():
    dut, driver, pulses = build()

    def bench():
        for n, (name, _) in enumerate(COUNTERS):
            yield pulses[name].eq(1)
            for _ in range(n + 1):
                yield
            yield pulses[name].eq(0)
        yield
        for n, (name, _) in enumerate(COUNTERS):
            assert (yield from driver.read(HOST[f"COUNT_{name}"].offset)) == n + 1, name

    run_simulation(dut, bench())


def test_a_counter_without_or_with_two_sources_is_an_error():
    pulses = {name: Signal() for name, _ in COUNTERS}
    assert collect_counters(pulses) == pulses
    with pytest.raises(ValueError, match="DOORBELLS has two sources"):
        collect_counters(pulses, {"DOORBELLS": Signal()})
    with pytest.raises(ValueError, match="without a source: .*LINK_LOST"):
        collect_counters({name: pulse for name, pulse in pulses.items() if name != "LINK_LOST"})
    with pytest.raises(ValueError, match="not described: .*INVENTED"):
        collect_counters(pulses, {"INVENTED": Signal()})


def test_the_link_is_shown_and_controlled():
    dut, driver, _ = build()
    link, pulses = dut.link, []

    def read(name):
        return (yield from driver.read(HOST[name].offset))

    def bench():
        for name, value in dict(
            state=2,
            reason=7,
            signal=1,
            stopped=0xA,
            prbs=1,
            peer=0xBEEF,
            peer_known=1,
            round_trip=99,
            prbs_words=0x12345678,
            prbs_errors=3,
            slack_high=0x04030201,
        ).items():
            yield getattr(link, name).eq(value)
        yield
        assert (yield from read("LINK_STATUS")) == 2 | 1 << 4 | 0xA << 5 | 7 << 9 | 1 << 13
        assert (yield from read("LINK_PEER")) == 0x1BEEF
        assert (yield from read("LINK_ROUND_TRIP")) == 99
        assert (yield from read("LINK_PRBS_WORDS")) == 0x12345678
        assert (yield from read("LINK_PRBS_ERRORS")) == 3
        assert (yield from read("LINK_SLACK_HIGH")) == 0x04030201
        assert not (yield dut.link_test)
        yield from driver.write(HOST["LINK_CONTROL"].offset, 4 | 3 << 3 | 1 << 7)
        yield from driver.write(HOST["LINK_NONCE"].offset, 0x1234)
        yield from driver.write(HOST["LINK_COMMAND"].offset, 1 << 2)
        yield
        yield
        control = dut.link_control
        assert (
            (yield control.transmit) == 4
            and (yield control.check) == 3
            and (yield control.far) == 1
        )
        assert (yield control.near) == 0 and (yield control.phy) == 0 and (yield dut.link_test)
        assert (yield dut.link_nonce) == 0x1234

    @passive
    def watch():
        while True:
            pulses.append(
                (
                    (yield dut.link_command.error),
                    (yield dut.link_command.retrain),
                    (yield dut.link_command.ping),
                )
            )
            yield

    run_simulation(dut, [bench(), watch()])
    assert [pulse for pulse in pulses if any(pulse)] == [(0, 0, 1)]
