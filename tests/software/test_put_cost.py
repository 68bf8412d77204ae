"""Cost of a put for its caller, counted in instructions by Valgrind's callgrind.

The card is the mock. Its answers are no part of dib_put(), which ends when the socket has the
command. The path to the socket is that of a simulated card.
"""

# SPDX-License-Identifier: BSD-2-Clause

from tests.software import callgrind

COUNT = 10_000


def test_instructions_of_a_put(serve, image, tmp_path, figure):
    program = callgrind.build("put_cost.c", tmp_path / "put_cost")
    profile = callgrind.run(tmp_path, [program, serve().uri, image(), str(COUNT)])
    puts, whole = profile.inclusive("dib_put")
    writes, socket = profile.inclusive("dib_vfio_send_bytes")
    assert puts == writes == COUNT  # one write to the socket a put
    figure(
        "put-instructions-with-socket",
        round(whole / puts, 1),
        "instructions of dib_put(), 8 bytes, with the write to the socket",
    )
    assert figure(
        "put-instructions",
        round((whole - socket) / puts, 1),
        "instructions of dib_put(), 8 bytes, less the write "
        "to the socket that brings slot and doorbell",
        at_most=250,
    )
