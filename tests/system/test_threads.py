"""Every endpoint of both cards in the hands of its own thread; `python tests/soak/threads.py` goes
on for minutes.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import C

from tests.soak import threads


@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_threads_share_a_card_without_a_wrong_byte_or_a_race(sanitizer, seed):
    report = threads.run(0, seed, sanitizer)
    assert report["exit_code"] == 0 and report["trouble"] == "", report["trouble"]
    assert report["bytes_wrong"] == 0 and report["bytes"] > 100_000 and report["notices"] > 0
    assert report["rounds"] >= 2 * 2 * C.ENDPOINTS
