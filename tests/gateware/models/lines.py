"""A driver of line ports for the tests: one access at a time, by byte address, 32 bits."""

# SPDX-License-Identifier: BSD-2-Clause


class LineDriver:
    """Reads and writes single words through a line port, as the host side does.

    Parameters
    ----------
    port : line_port
    """

    def __init__(self, port):
        self.port = port
        self.bytes = len(port.dat_w) // 8

    def write(self, address, value, enables=0xF):
        """Write the bytes of `value` at `address` that `enables` names; 1 cycle."""
        lane = address % self.bytes
        yield self.port.adr.eq(address // self.bytes)
        yield self.port.dat_w.eq(value << 8 * lane)
        yield self.port.be.eq(enables << lane)
        yield self.port.we.eq(1)
        yield
        yield self.port.we.eq(0)

    def read(self, address):
        """Read a word; the data is sampled exactly 2 cycles after the request."""
        yield self.port.be.eq(0xF << address % self.bytes)
        yield self.port.adr.eq(address // self.bytes)
        yield self.port.re.eq(1)
        yield
        yield self.port.re.eq(0)
        yield self.port.adr.eq(0)
        yield
        yield
        line = yield self.port.dat_r
        return line >> 8 * (address % self.bytes) & 0xFFFFFFFF
