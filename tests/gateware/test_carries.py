"""A comparison, a shift and a concatenation see each sum and each product whole. A choice and a
comparison see no inverted value that Python makes negative. A comparison sees no difference that is
negative.

Verilog gives the operands of a comparison the width of the widest of them. The amount of a shift
and the parts of a concatenation have the width of their own widest operand (IEEE 1364-2005, 5.4.1).
What is above that width is lost, but Migen's own simulator keeps it. So such a fault does not show
in a simulation of blocks.

The difference 0 - 1 is -1 in that simulator, and the largest number of its width in Verilog.

In that simulator `~` of a bit is -1 or -2, and both count as true in a `Mux`. An `If` takes the
bits of its condition, so it is right.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

import pytest
from migen.fhdl.bitcontainer import value_bits_sign
from migen.fhdl.structure import Cat, Signal, _Operator, _Slice

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "boards"))

import sim as board  # noqa: E402

COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
SHIFTS = {"<<<", ">>>"}
SIZED_BY_CONTEXT = {"+", "-", "*", "&", "|", "^", "~", "m"}  # IEEE 1364-2005, table 5-22

# Sums whose carry cannot come, by their signals, with the reason.
KNOWN = {
    ("low", "length"): "1023 + 1024 fits the 11 bits of the comparison",
    ("line_dat", "1"): "the sum without its carry is 0, and the data of a slot never ends there",
}

# Differences that are compared, by their signals, with the reason why none is below 0.
DIFFERENCES = {
    ("index", "total_listed", "total_levels", "total_levels"): "a walk that divides has a level",
    ("bytes_left", "unit_offset"): "the offset is below 16, the bytes of a line",
    ("clk_divider", "clk_divider"): "LiteX's SPI master: its divider is a constant above 1",
    ("count", "length"): "LiteX's SPI master: a transfer has 8 bits or more",
    ("word", "source_payload_half"): "one word or two of the 64 of a block",
    ("shut", "shut"): "the mask makes the lowest bit 0 of what is compared with 0",
}


def operands(value):
    """The values that share the width of `value`."""
    return value.operands[1:] if value.op == "m" else value.operands


def verilog_width(value):
    """Bits that Verilog gives the expression if nothing around it is wider."""
    if not isinstance(value, _Operator):
        return len(value)
    if value.op in COMPARISONS:
        return 1
    if value.op in SIZED_BY_CONTEXT:
        return max(map(verilog_width, operands(value)))
    return verilog_width(value.operands[0])


def short_sums(value, width):
    """The sums and products in a comparison of `width` bits that have more bits."""
    if isinstance(value, _Operator) and value.op in SIZED_BY_CONTEXT:
        if value.op in "+*" and value_bits_sign(value)[0] > width:
            yield value
        for operand in operands(value):
            yield from short_sums(operand, width)


def parts(node):
    """All statements and values below a statement, a value, or a list of them."""
    yield node
    below = {
        "_Assign": lambda: [node.r],
        "If": lambda: [node.cond, *node.t, *node.f],
        "Case": lambda: [node.test, *node.cases.values()],
        "_Operator": lambda: node.operands,
        "_Slice": lambda: [node.value],
        "Cat": lambda: node.l,
        "Replicate": lambda: [node.v],
    }
    if isinstance(node, (list, tuple)):
        children = node
    else:
        children = below.get(type(node).__name__, list)()
    for child in children:
        yield from parts(child)


def name(value):
    """The last part of a signal's name, or a constant's value."""
    while isinstance(value, _Slice):
        value = value.value
    if hasattr(value, "backtrace") and value.backtrace:
        return value.backtrace[-1][0]
    return str(getattr(value, "value", type(value).__name__))


def sized(node):
    """(value, width) of the values below `node` whose width Verilog takes from them alone."""
    if isinstance(node, Cat):
        # What is above the last part is above the whole.
        return [(part, verilog_width(part)) for part in node.l[:-1]]
    if not isinstance(node, _Operator):
        return []
    if node.op in COMPARISONS:
        width = max(map(verilog_width, node.operands))
        return [(operand, width) for operand in node.operands]
    if node.op in SHIFTS:
        return [(node.operands[1], verilog_width(node.operands[1]))]
    return []


def faults(fragment):
    """(names of the operands, width) of each sum or product that is cut."""
    for node in parts([fragment.comb, *fragment.sync.values()]):
        for value, width in sized(node):
            for found in short_sums(value, width):
                yield tuple(name(term) for term in found.operands), width


def negative(value):
    """Whether an inversion makes the value negative in Migen's simulator."""
    if not isinstance(value, _Operator) or value.op in COMPARISONS:
        return False
    if value.op == "~":
        return True
    found = [negative(operand) for operand in operands(value)]
    return all(found) if value.op == "&" else any(found)


def below_zero(value):
    """Whether a difference can make the value negative in Migen's simulator."""
    if not isinstance(value, _Operator) or value.op not in SIZED_BY_CONTEXT:
        return False
    return value.op == "-" or any(map(below_zero, operands(value)))


def differences(fragment):
    """Names of the signals of each comparison of a difference that may be below 0."""
    for node in parts([fragment.comb, *fragment.sync.values()]):
        if isinstance(node, _Operator) and node.op in COMPARISONS:
            if any(map(below_zero, node.operands)):
                yield signals(node)


def signals(value):
    """Names of all signals of a value."""
    return tuple(name(node) for node in parts(value) if isinstance(node, Signal))


def inversions(fragment):
    """Names of the signals of each choice or comparison that sees a negative value."""
    for node in parts([fragment.comb, *fragment.sync.values()]):
        if isinstance(node, _Operator) and (
            (node.op == "m" and negative(node.operands[0]))
            or (node.op in COMPARISONS and any(map(negative, node.operands)))
        ):
            yield signals(node)


CARDS = {
    "64 bits, window": (64, {"window": True}),
    "128 bits, window": (128, {"window": True}),
    "128 bits, Ethernet": (128, {"mtu": 9000, "bulk_width": 64}),
    "64 bits, ring": (64, {"fabric": "ring"}),
    "256 bits": (256, {}),
}


@pytest.fixture(scope="module", params=CARDS)
def card(request, tmp_path_factory):
    width, options = CARDS[request.param]
    return board.SimCard(
        board.SourceList(tmp_path_factory.mktemp("card")), width, 125e6, **options
    ).get_fragment()


def test_a_card_cuts_no_sum_or_product_that_it_compares_shifts_by_or_joins(card):
    assert {found for found in faults(card) if found[0] not in KNOWN} == set()


def test_a_card_chooses_and_compares_by_no_inverted_bit(card):
    assert set(inversions(card)) == set()


def test_a_card_compares_no_difference_below_zero(card):
    assert set(differences(card)) - set(DIFFERENCES) == set()


def test_blocks_that_are_in_no_such_card_have_no_such_sum_and_no_such_inversion():
    from dibber.link.ethernet.base_r.station import BaseRStation
    from dibber.link.ethernet.star import EthernetStar

    for block in (EthernetStar(3), BaseRStation()):
        fragment = block.get_fragment()
        assert set(faults(fragment)) == set(inversions(fragment)) == set()
        assert set(differences(fragment)) == set()


def test_no_sum_of_the_bonded_link_loses_its_carry():
    from dibber.link.bonded_port import BondedPort
    from dibber.packet.chunk_inspector import ChunkInspector

    for block in (BondedPort(), ChunkInspector(32), ChunkInspector(256)):
        assert set(faults(block.get_fragment())) == set(), type(block).__name__


def test_what_is_cut_is_found():
    from migen import If, Module, Signal

    class Sums(Module):
        def __init__(self):
            few, more, much = Signal(4), Signal(4), Signal(5)
            self.comb += [
                If(few + more <= 9, much.eq(1)).Elif(few + more <= much, much.eq(2)),
                much.eq(1 << 8 * more),
                much.eq(Cat(few + more, few)),
                much.eq(Cat(few, few + more)),
            ]

    assert [width for _, width in faults(Sums().get_fragment())] == [4, 4, 4]


def test_an_inverted_choice_or_comparison_is_found_and_a_masked_one_is_not():
    from migen import If, Module, Mux, Signal

    class Choices(Module):
        def __init__(self):
            one, two, three = Signal(), Signal(), Signal()
            self.comb += [
                three.eq(Mux(~one, two, 0)),
                three.eq(Mux(one & ~two, one, 0)),
                three.eq(Mux(~one & ~two, one, 0)),
                three.eq(~one == two),
                If(~one, three.eq(Mux((one | ~two) == 0, 0, ~one))),
            ]

    assert len(list(inversions(Choices().get_fragment()))) == 4


def test_a_compared_difference_is_found():
    from migen import If, Module, Signal

    class Differences(Module):
        def __init__(self):
            few, more, least = Signal(4), Signal(4), Signal()
            self.comb += [
                If(few == more - 1, least.eq(1)),
                If(few + 1 == more, least.eq(few - 1)),
                If((few - more) & 3 == 3, least.eq(1)),
            ]

    assert len(list(differences(Differences().get_fragment()))) == 2
