"""The cable: its code against LiteX's, its timing, its bit errors, and what a cut does."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess

import pytest
from litex.soc.cores.code_8b10b import (
    disparity,
    table_3b4b,
    table_3b4b_flip,
    table_5b6b,
    table_5b6b_flip,
)

PROFILES = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles"


@pytest.fixture
def cable(programs):
    def run(*arguments):
        result = subprocess.run(
            [programs / "cable-bench", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture
def words(cable):
    """Run words through the cable: words("gen2x4", cycles, seed, "key=value"...) gives the JSON."""

    def run(profile, cycles, seed, *arguments):
        return json.loads(cable("words", PROFILES / f"{profile}.toml", cycles, seed, *arguments))

    return run


# The code -----------------------------------------------------------------------------------------


def encode(byte, k, positive):
    """LiteX' SingleEncoder in plain Python: a symbol with `a` in bit 9, and the new disparity."""
    code5, code3 = byte & 31, byte >> 5
    if k and code5 == 28:
        code6, unbalanced, flip6 = 0b110000, True, True
    else:
        code6 = table_5b6b[code5]
        unbalanced, flip6 = disparity(code6, 6) != 0, table_5b6b_flip[code5]
    # The tables are for positive disparity; a sub-block that may be flipped is, when it is
    # negative.
    if not positive and (unbalanced or flip6):
        code6 ^= 0x3F
    middle = positive ^ unbalanced
    code4 = table_3b4b[code3]
    alternate = code3 == 7 and (
        k or (not middle and code5 in (17, 18, 20)) or (middle and code5 in (11, 13, 14))
    )
    unbalanced4, flip4 = disparity(code4, 4) != 0, table_3b4b_flip[code3]
    if k and code5 == 28 and not unbalanced4:
        flip4 = True
    if alternate:
        code4, unbalanced4, flip4 = 0b1000, True, True
    if not middle and (unbalanced4 or flip4):
        code4 ^= 0xF
    return code6 << 4 | code4, middle ^ unbalanced4


CONTROLS = [28 | y << 5 for y in range(8)] + [x | 7 << 5 for x in (23, 27, 29, 30)]


def symbols(cable):
    table = {}
    for line in cable("code").splitlines():
        k, byte, before, symbol, after = map(int, line.split())
        table[k, byte, before] = symbol, after
    return table


def test_every_data_symbol_is_that_of_litex(cable):
    table = symbols(cable)
    for byte in range(256):
        for before in (0, 1):
            assert table[0, byte, before] == encode(byte, False, bool(before)), (
                f"D{byte & 31}.{byte >> 5}"
            )


def test_the_twelve_control_symbols_are_those_of_the_standard(cable):
    table = symbols(cable)
    assert {byte for k, byte, _ in table if k} == set(CONTROLS)
    # IEEE 802.3, table 36-2.
    for byte, symbol in [
        (0x1C, "0011110100"),
        (0x3C, "0011111001"),
        (0x5C, "0011110101"),
        (0x7C, "0011110011"),
        (0x9C, "0011110010"),
        (0xBC, "0011111010"),
        (0xDC, "0011110110"),
        (0xFC, "0011111000"),
        (0xF7, "1110101000"),
        (0xFB, "1101101000"),
        (0xFD, "1011101000"),
        (0xFE, "0111101000"),
    ]:
        assert table[1, byte, 0][0] == int(symbol, 2)
        assert table[1, byte, 1][0] == int(symbol, 2) ^ 0x3FF


def test_the_decoder_undoes_the_encoder_and_marks_everything_else(cable):
    table = symbols(cable)
    good = {(symbol, before): (byte, k) for (k, byte, before), (symbol, _) in table.items()}
    used = {symbol for symbol, _ in good}
    for line in cable("decode").splitlines():
        symbol, before, byte, k, code_error, disparity_error = map(int, line.split())
        assert code_error == (symbol not in used)
        assert disparity_error == (symbol in used and (symbol, before) not in good)
        if (symbol, before) in good:
            assert (byte, k) == good[symbol, before]


# Time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "profile, settings, cycles",
    [
        ("gen2x4", [], 20),  # 155 ns at 8 ns
        ("gen2x4", ["link.length_m=0"], 18),  # 140 ns
        ("gen2x4", ["link.length_m=6"], 22),  # 170 ns
        ("gen2x4", ["link.delay_ns_per_m=10"], 22),
        ("gen2x4", ["link.transmit_ns=120"], 27),  # 215 ns
        ("gen2x4", ["link.receive_ns=160"], 30),  # 235 ns
        ("gen1x1", [], 10),  # 155 ns at 16 ns
    ],
)
def test_words_take_transceivers_and_cable(words, profile, settings, cycles):
    result = words(profile, 1000, 1, *settings)
    assert result["delays"] == [cycles] * 100
    assert result["taken"] == 1000 and result["wrong"] == 0


def test_a_slower_link_takes_fewer_words(words):
    # ECP5: 2.5 Gb/s is 62.5 M words a second, of the 80 M cycles of its clock.
    for rate, share in [(2.5, 25 / 32), (1.25, 25 / 64)]:
        result = words("gen2x1", 8000, 1, "card.clock_mhz=80", f"link.rate_gbps={rate}")
        assert result["taken"] == pytest.approx(8000 * share, abs=1)
        assert result["wrong"] == 0


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-5])
def test_bit_errors_come_at_their_rate(words, seed, rate):
    bits = 200000 * 40
    result = words("gen2x4", 200000, seed, f"link.bit_error_rate={rate}")
    assert result["bit_errors"] == pytest.approx(bits * rate, abs=5 * (bits * rate) ** 0.5)
    assert result["code_errors"] + result["disparity_errors"] > 0
    assert 0 < result["wrong"] <= result["bit_errors"]
    assert result["came"] >= result["taken"] - 20


def test_a_decoder_misses_some_errors_so_that_the_crc_has_work(words, seed):
    # A flipped bit may turn one data symbol into another, and its disparity is seen words later or
    # never.
    result = words("gen2x4", 200000, seed, "link.bit_error_rate=1e-4")
    assert result["unmarked"] > 0


def test_bit_errors_repeat_with_the_seed(words):
    run = lambda seed: words("gen2x4", 50000, seed, "link.bit_error_rate=1e-4")
    assert run(1) == run(1) != run(2)


# A cut --------------------------------------------------------------------------------------------


def test_a_cut_cable_gives_noise_then_silence_then_good_words_again(words, seed):
    # Out from 2 µs to 6 µs: cycles 250 to 750, seen 20 cycles later.
    result = words("gen2x4", 2000, seed, "fault=unplugged:2:6")
    assert result["lost_words"] == 500
    assert result["silent_cycles"] == 500 - 16
    assert result["last_silent_cycle"] == 769
    assert result["code_errors"] > 0
    assert result["taken"] - result["came"] == 500 - 16 + 20


# Loopback -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, cycles", [([], 18), (["link.length_m=50"], 18), (["link.transmit_ns=120"], 25)]
)
def test_a_transceiver_in_loopback_hears_itself_without_cable_and_the_other_end_nothing(
    words, settings, cycles
):
    # Whatever is wrong with the cable. The words of cycle 500 and of the 499 after it go back and
    # nowhere else, and the last `cycles` of them come when the loopback has ended, but one.
    result = words("gen2x4", 2000, 1, "loopback=500:1000", "fault=inverted:0:1e6", *settings)
    assert result["looped_delays"] == [cycles] * (501 - cycles) and result["looped_signal"] == 500
    assert result["silent_cycles"] == 500 and result["taken"] == 2000


# Other faults -------------------------------------------------------------------------------------

# The bench sends K28.5 D10.2 D10.2 D0.0 and counted data by turns; a fault lasts from 2 µs to 6 µs:
# 500 words.


@pytest.mark.parametrize("fault", ["noise", "rate"])
def test_random_bits_are_mostly_no_code(words, seed, fault):
    result = words("gen2x4", 2000, seed, f"fault={fault}:2:6")
    assert result["came"] == result["taken"] - 20 and result["silent_cycles"] == 0
    # Of 1,024 symbols the code uses 134 or so at each disparity: most others are marked.
    assert 490 <= result["wrong"] <= 501
    assert result["code_errors"] + result["disparity_errors"] > 1000


def test_the_symbols_of_a_stranger_are_good_ones_without_comma(words, seed):
    result = words("gen2x4", 2000, seed, "fault=foreign:2:6")
    assert 490 <= result["wrong"] <= 500
    # Only where it begins and ends may the disparity be another.
    assert result["code_errors"] == 0 and result["disparity_errors"] <= 2


def test_an_inverted_pair_makes_other_symbols(words, seed):
    result = words("gen2x4", 2000, seed, "fault=inverted:2:6")
    assert 490 <= result["wrong"] <= 500


def test_a_fault_may_be_of_one_direction(words, seed):
    assert words("gen2x4", 2000, seed, "fault=noise:2:6:0")["wrong"] > 490
    assert words("gen2x4", 2000, seed, "fault=noise:2:6:1")["wrong"] == 0


def test_a_forged_stop_changes_flow_words_and_nothing_else(words, seed):
    result = words("gen2x4", 2000, seed, "fault=stop:2:6")
    assert result["wrong"] == 250 and result["code_errors"] == result["disparity_errors"] == 0
