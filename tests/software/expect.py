"""Common parts of the library's tests."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib

import libdibber
from libdibber import DibberError


@contextlib.contextmanager
def fails(name, reason):
    """The block raises DibberError `name` with a reason that contains `reason`."""
    try:
        yield
    except DibberError as error:
        assert error.name == name, str(error)
        assert reason in error.reason, error.reason
    else:
        raise AssertionError(f"no DibberError {name}")


def matrix(rows, columns):
    """8-byte elements in memory that the mock reaches without messages."""
    return libdibber.alloc(rows * columns * 8).view("u8").reshape(rows, columns)
