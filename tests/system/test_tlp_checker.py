"""The TLP checker finds each kind of fault, and nothing in good traffic."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

from tests.system.tlp_checker import Checker

CARD, HOST = PcieId(1, 0, 0), PcieId(0, 0, 0)


def write(address, length, **changes):
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_WRITE if address + length < 1 << 32 else TlpType.MEM_WRITE_64
    tlp.requester_id = CARD
    tlp.set_addr_be_data(address, bytes(length))
    for name, value in changes.items():
        setattr(tlp, name, value)
    return tlp


def read(address, length, tag, requester=CARD):
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_READ
    tlp.requester_id = requester
    tlp.tag = tag
    tlp.set_addr_be(address, length)
    return tlp


def answer(request, count=None):
    tlp = Tlp.create_completion_data_for_tlp(request, HOST)
    tlp.byte_count = request.get_be_byte_count() if count is None else count
    tlp.lower_address = request.address & 0x7C | request.get_first_be_offset()
    tlp.set_data(bytes(4 * request.length))
    return tlp


def errors(*traffic, **limits):
    checker = Checker(**limits)
    for at, (from_card, tlp) in enumerate(traffic):
        checker.take(at * 8000, from_card, tlp.pack())
    checker.finish()
    return checker.errors


def test_good_traffic_passes():
    request = read(0x1003, 10, tag=5)
    assert (
        errors(
            (True, write(0x1FFD, 3)),
            (True, write(0x1001, 200)),
            (True, request),
            (False, answer(request)),
            (True, request),
            (False, answer(request)),
        )
        == []
    )


@pytest.mark.parametrize(
    "fault, traffic",
    [
        ("4K bound", [(True, write(0x1FF0, 32))]),
        ("payload above", [(True, write(0x1000, 132))]),
        ("one DW", [(True, write(0x1000, 4, last_be=0xF))]),
        ("holes", [(True, write(0x1000, 8, first_be=0b1010))]),
        (
            "tag in use",
            [
                (True, read(0x1000, 4, 1)),
                (True, read(0x2000, 4, 1)),
                (False, answer(read(0x1000, 4, 1))),
            ],
        ),
        ("tag beyond", [(True, read(0x1000, 4, 40)), (False, answer(read(0x1000, 4, 40)))]),
        ("read of more", [(True, read(0x1000, 516, 1)), (False, answer(read(0x1000, 516, 1)))]),
        ("never", [(True, read(0x1000, 4, 1))]),
        ("completes no", [(False, answer(read(0x1000, 4, 1)))]),
        ("byte count", [(True, read(0x1000, 8, 1)), (False, answer(read(0x1000, 8, 1), count=12))]),
    ],
)
def test_each_fault_is_found(fault, traffic):
    assert any(fault in e for e in errors(*traffic, max_payload=128, extended_tags=False))
