"""`bench patterns`: the geometry of what applications send, without a card."""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
import pytest
from dibber_cli.bench import patterns
from dibber_cli.bench.pattern import copy

MESSAGES = {message.name: message for message in patterns.all_messages()}

# Bytes of a message, computed from the loops of the applications.
LENGTHS = {
    "MILC_su3_zdown 8,8,8,8": 8 * 8 // 2 * 24 * 8 * 2,
    "NAS_LU_y 102": 102 * 5 * 8,
    "NAS_MG_x 130,66,66": 64 * 64 * 8,
    "NAS_MG_y 130,66,66": 128 * 64 * 8,
    "NAS_MG_z 130,66,66": 128 * 64 * 8,
    "WRF_y 3-D X=32": 23 * 4 * 65 * 3,
    "WRF_x 3-D X=32": 3 * 4 * 65 * 44,
    "FFT2 256": 128 * 128 * 16,
    "SPECFEM3D_mt 7600": 7600 * 12,
    "SPECFEM3D_oc 3225/88881": 3225 * 4,
    "SPECFEM3D_cm 1957/39929": 1957 * 12,
    "LAMMPS_full 24 B 3062/3534": 3062 * 24,
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_message_has_as_many_bytes_as_the_application_sends(name):
    message = MESSAGES[name]
    assert message.source.length == message.target.length == LENGTHS[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_no_two_transfers_touch_the_same_byte(name):
    for side in (MESSAGES[name].source, MESSAGES[name].target):
        starts = np.concatenate([side.blocks() + n * side.span for n in range(side.transfers)])
        starts.sort()
        assert starts[0] >= 0 and (np.diff(starts) >= side.block).all()


def test_fft2_transposes_a_block():
    message = patterns.fft2(8)
    memory = np.arange(8 * 4 * 16, dtype=np.uint8)
    into = np.zeros(8 * 8 * 16, dtype=np.uint8)
    copy(message.source, memory, message.target, into)
    matrix = memory.reshape(4, 8, 16)
    turned = into[: 4 * 8 * 16].reshape(4, 8, 16)
    assert (turned[:, :4] == matrix[:, :4].transpose(1, 0, 2)).all()


def test_what_is_too_large_for_the_simulator_is_named():
    left_out = {name for name, message in MESSAGES.items() if not patterns.measured(message)}
    assert "NAS_MG_x 514,258,258" in left_out and "MILC_su3_zdown 16,16,16,16" not in left_out
    assert {m.name for m in patterns.chosen()} == set(MESSAGES) - left_out


def test_quick_has_the_smallest_size_of_each_application():
    quick = patterns.chosen(first=True)
    assert len({m.application for m in quick}) == len(quick)
    assert {m.application for m in quick} == {m.application for m in MESSAGES.values()}


def test_the_least_share_of_vectors_and_lists_is_named():
    rows = [
        {"series": way, "x": name, "value": value}
        for name, values in {
            "NAS_LU_y 12": (90, 100),
            "FFT2 256": (99, 100),
            "SPECFEM3D_oc 493/3697": (50, 100),
        }.items()
        for way, value in zip(("direct", "contiguous"), values)
    ]
    assert patterns.findings(rows) == [
        "vectors, direct: at least 0.90 of contiguous (NAS_LU_y 12), 2 patterns",
        "lists, direct: at least 0.50 of contiguous (SPECFEM3D_oc 493/3697), 1 patterns",
    ]
