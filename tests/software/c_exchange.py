"""The exchange of libdibber in C, with the calls of libdibber.Exchange: for tests of both."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes

from libdibber import binding
from libdibber.exchange import ExchangeError

DATA_BYTES = 1 << 20


class Options(ctypes.Structure):
    """struct dib_exchange_options"""

    _fields_ = [
        ("party", ctypes.c_uint32),
        ("parties", ctypes.c_uint32),
        ("token", ctypes.c_char_p),
        ("timeout_ns", ctypes.c_uint64),
        ("endpoint", ctypes.c_void_p),
    ]


def library():
    lib = binding.library()
    lib.dib_exchange_publish.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    ]
    lib.dib_exchange_look_up.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t),
        ctypes.c_void_p,
    ]
    for call in (lib.dib_exchange_listen, lib.dib_exchange_connect):
        call.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
    for call in (lib.dib_exchange_close, lib.dib_exchange_barrier):
        call.argtypes = [ctypes.c_void_p]
    return lib


def check(code):
    """Raise ExchangeError for an error code."""
    if code < 0:
        reason = library().dib_last_reason().decode()
        raise ExchangeError(binding.ERRORS[-code - 1], reason)


class CExchange:
    """As libdibber.Exchange."""

    def __init__(self, call, where, party, parties, token, timeout):
        self.party, self.handle = party, ctypes.c_void_p()
        options = Options(party, parties, token.encode(), int(timeout * 1e9), None)
        check(call(where.encode(), ctypes.byref(options), ctypes.byref(self.handle)))

    @classmethod
    def listen(cls, where, parties=2, token="", timeout=60):
        return cls(library().dib_exchange_listen, where, 0, parties, token, timeout)

    @classmethod
    def connect(cls, where, party=1, parties=2, token="", timeout=60):
        return cls(library().dib_exchange_connect, where, party, parties, token, timeout)

    def close(self):
        check(library().dib_exchange_close(self.handle))
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.handle:
            self.close()

    def publish(self, name, data):
        check(library().dib_exchange_publish(self.handle, name.encode(), data, len(data)))

    def look_up(self, party, name):
        data, length = ctypes.create_string_buffer(DATA_BYTES), ctypes.c_size_t()
        check(
            library().dib_exchange_look_up(
                *(self.handle, party, name.encode(), data, DATA_BYTES, ctypes.byref(length))
            )
        )
        return data.raw[: length.value]

    def barrier(self):
        check(library().dib_exchange_barrier(self.handle))
