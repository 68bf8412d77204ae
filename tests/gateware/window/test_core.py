"""The window in a whole card: it has its endpoint, its BAR and its registers, and a card without it
has none of them.
"""

# SPDX-License-Identifier: BSD-2-Clause

from boards.sim import SimCard, SourceList

from dibber.interface.description import C


def test_a_card_has_the_window_exactly_if_it_was_asked_for():
    with_it, without = (
        SimCard(SourceList(), 64, clock_hz=125e6, window=window) for window in (True, False)
    )
    window = with_it.core.window
    assert window.endpoint == C.ENDPOINTS - 1
    assert "window" in with_it.core.host.ports and hasattr(with_it.core.host, "aperture")
    assert with_it.pcie.in_aperture in with_it.ios
    assert without.core.window is None
    assert "window" not in without.core.host.ports and not hasattr(without.core.host, "aperture")
    assert without.pcie.in_aperture not in without.ios
