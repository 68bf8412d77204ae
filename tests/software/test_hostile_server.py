"""After any message of a server, the library returns an error with a reason and goes on."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

import libdibber
import pytest
from libdibber import DibberError

from tests.software.mock_vfio_user import DMA_READ, DMA_WRITE, HEADER, REGION_READ, REPLY, VERSION


def message(ident, command, flags, payload=b"", size=None, error=0):
    return (
        HEADER.pack(
            ident, command, HEADER.size + len(payload) if size is None else size, flags, error
        )
        + payload
    )


@pytest.mark.parametrize(
    "answer, name, reason",
    [
        (message(0, VERSION, REPLY, size=3), "PROTOCOL", "impossible size"),
        (message(0, VERSION, REPLY, size=0x7FFFFFFF), "PROTOCOL", "impossible size"),
        (message(77, VERSION, REPLY, b"\0\0\1\0"), "PROTOCOL", "answer to no request"),
        (message(0, REGION_READ, REPLY, b"\0\0\1\0"), "PROTOCOL", "answer to no request"),
        (message(0, VERSION, 7), "PROTOCOL", "neither request nor reply"),
        (message(0, VERSION, REPLY, b"\0"), "PROTOCOL", "too short"),
        (message(0, VERSION, REPLY, b"\5\0\1\0"), "PROTOCOL", "vfio-user 5.1"),
        (message(0, VERSION, REPLY | 0x20, error=95), "PROTOCOL", "refused vfio-user"),
        (message(0, VERSION, REPLY)[:9], "LOST", "closed the connection"),
    ],
)
def test_a_bad_answer_to_version(serve, answer, name, reason):
    mock = serve()

    def tamper(command, _):
        if len(answer) < HEADER.size:
            mock.server.connection.sendall(answer)
            mock.server.disconnect()
            return b""
        return answer if command == VERSION else None

    mock.server.tamper = tamper
    with pytest.raises(DibberError, match=reason) as caught:
        libdibber.Card(mock.uri)
    assert caught.value.name == name
    mock.server.tamper = None
    libdibber.Card(mock.uri).close()


@pytest.mark.parametrize(
    "request_, good",
    [
        (message(5, DMA_READ, 0), False),
        (message(5, DMA_READ, 0, struct.pack("<QQ", 0, 8)), False),
        (message(5, DMA_READ, 0, struct.pack("<QQ", 1 << 63, 1 << 63)), False),
        (message(5, DMA_READ, 0, struct.pack("<QQ", 0x10000000, 1 << 40)), False),
        (message(5, DMA_WRITE, 0, struct.pack("<QQ", 0x10000000, 100) + b"x"), False),
        (message(5, 99, 0), False),
        (message(5, DMA_READ, 0, struct.pack("<QQ", 0x10000000, 8)), True),
    ],
)
def test_a_bad_request_gets_an_error_and_the_connection_lives(loaded, request_, good):
    mock = loaded()
    answers = []
    receive = mock.server._receive

    def answered():
        message_ = receive()
        if message_[2] & REPLY:
            answers.append((message_[0], message_[2], message_[3]))
            return answered()
        return message_

    mock.server._receive = answered
    mock.server.tamper = lambda command, m: request_ + m if command == REGION_READ else None
    mock.card.read_firmware(0, 4)
    mock.server.tamper = None
    mock.card.info()
    assert (
        answers[0][0] == 5
        and bool(answers[0][1] & 0x20) == (not good)
        and bool(answers[0][2]) == (not good)
    )


def test_random_bytes_instead_of_answers(serve, seed):
    mock, choice = serve(), random.Random(seed)
    for _ in range(200):
        rubbish = choice.randbytes(choice.randrange(1, 64))

        def sent(command, m, rubbish=rubbish):
            changed = rubbish if choice.random() < 0.5 else m[:16] + rubbish
            mock.server.connection.sendall(changed)
            mock.server.disconnect()
            return b""

        mock.server.tamper = sent
        with pytest.raises(DibberError) as caught:
            libdibber.Card(mock.uri)
        assert caught.value.reason
    mock.server.tamper = None
    libdibber.Card(mock.uri).close()
