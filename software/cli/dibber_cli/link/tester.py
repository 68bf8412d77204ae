"""Link testers: host registers and a link with its test equipment, and neither processor nor
packets (boards/linktest.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import libdibber

from dibber_cli.errors import CommandError

BITS = 32  # width of its data path, which has no packets and so no lines
ADVICE = "'dibber link test' and 'dibber link prbs' test all that it has"


def is_tester(info: Mapping[str, Any]) -> bool:
    """Whether a card with this info() of libdibber is a link tester."""
    return info["data_width"] == BITS


@contextlib.contextmanager
def programmed(uri: str) -> Iterator[libdibber.Card]:
    """Open a card with a control program as an observer, beside the program that has it. Raises
    CommandError for a link tester.
    """
    with libdibber.Card(uri, observe=True) as card:
        if is_tester(card.info()):
            raise CommandError(f"{uri} is a link tester, and has no control program", ADVICE)
        yield card
