"""JTAG ports of FPGAs behind OpenOCD's `remote_bitbang`: they take a bitstream and report
its end.
"""

# SPDX-License-Identifier: BSD-2-Clause

import socket
import threading

# IEEE 1149.1, figure 6-1: the next state for TMS 0 and 1.
RESET, IDLE, SELECT_DR, CAPTURE_DR, SHIFT_DR, EXIT1_DR, PAUSE_DR, EXIT2_DR, UPDATE_DR = range(9)
SELECT_IR, CAPTURE_IR, SHIFT_IR, EXIT1_IR, PAUSE_IR, EXIT2_IR, UPDATE_IR = range(9, 16)
NEXT = {
    RESET: (IDLE, RESET),
    IDLE: (IDLE, SELECT_DR),
    SELECT_DR: (CAPTURE_DR, SELECT_IR),
    CAPTURE_DR: (SHIFT_DR, EXIT1_DR),
    SHIFT_DR: (SHIFT_DR, EXIT1_DR),
    EXIT1_DR: (PAUSE_DR, UPDATE_DR),
    PAUSE_DR: (PAUSE_DR, EXIT2_DR),
    EXIT2_DR: (SHIFT_DR, UPDATE_DR),
    UPDATE_DR: (IDLE, SELECT_DR),
    SELECT_IR: (CAPTURE_IR, RESET),
    CAPTURE_IR: (SHIFT_IR, EXIT1_IR),
    SHIFT_IR: (SHIFT_IR, EXIT1_IR),
    EXIT1_IR: (PAUSE_IR, UPDATE_IR),
    PAUSE_IR: (PAUSE_IR, EXIT2_IR),
    EXIT2_IR: (SHIFT_IR, UPDATE_IR),
    UPDATE_IR: (IDLE, SELECT_DR),
}

# Instructions (Lattice FPGA-TN-02039, table of slave configuration commands).
READ_ID, READ_STATUS, BITSTREAM_BURST, DISABLE = 0xE0, 0x3C, 0x7A, 0x26
DONE = 1 << 8  # of the status

# The same of Xilinx' 7 series (UG470, table 6-3).
XC7_READ_ID, XC7_CFG_IN = 0x09, 0x05


class ECP5TAP:
    """`step` is a rising edge of TCK. `bits` are those that came by LSC_BITSTREAM_BURST, as the
    bytes b"0" and b"1".
    """

    ir_bits, read_id, burst = 8, READ_ID, BITSTREAM_BURST

    def __init__(self, idcode):
        self.idcode = idcode
        self.state = RESET
        self.instruction = self.read_id
        self.register = self.length = 0
        self.bits = bytearray()
        self.instructions = []

    def captured(self):
        """(value, bits) of the register that the instruction selects."""
        if self.instruction == READ_ID:
            return self.idcode, 32
        if self.instruction == READ_STATUS:
            return DONE if self.bits and DISABLE in self.instructions else 0, 32
        return 0, 1

    def step(self, tms, tdi):
        if self.state == CAPTURE_IR:
            self.register, self.length = 0b01, self.ir_bits
        elif self.state == CAPTURE_DR:
            self.register, self.length = self.captured()
        elif self.state in (SHIFT_IR, SHIFT_DR):
            if self.state == SHIFT_DR and self.instruction == self.burst:
                self.bits.append(48 + tdi)
            self.register = self.register >> 1 | tdi << self.length - 1
        elif self.state == UPDATE_IR:
            self.instruction = self.register
            self.instructions.append(self.register)
        self.state = NEXT[self.state][tms]
        if self.state == RESET:
            self.instruction = self.read_id

    def shift(self, bits):
        """Many bits of a bitstream, TMS 0, at once."""
        self.bits += bits


class XC7TAP(ECP5TAP):
    """A 7-series part; `bits` are those that came by CFG_IN."""

    ir_bits, read_id, burst = 6, XC7_READ_ID, XC7_CFG_IN

    def captured(self):
        return (self.idcode, 32) if self.instruction == XC7_READ_ID else (0, 1)


class Bitbang(threading.Thread):
    """A server for one OpenOCD. It receives every byte at once, because OpenOCD fails where it
    would wait. The TAP gets the bytes when OpenOCD requests an answer.
    """

    RISING = bytes.maketrans(b"4567", b"0101")

    def __init__(self, tap):
        super().__init__(daemon=True)
        self.tap = tap
        self.listener = socket.create_server(("localhost", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            come = []
            while data := connection.recv(1 << 20):
                come.append(data)
                if b"R" in data:
                    connection.sendall(self.take(b"".join(come)))
                    come.clear()
            self.take(b"".join(come))

    def take(self, data):
        tap, answer, at = self.tap, bytearray(), 0
        while at < len(data):
            # A long piece of the bitstream: no read, no TMS.
            if tap.state == SHIFT_DR and tap.instruction == tap.burst:
                piece = data[at : at + 4096]
                calm = len(piece) - len(piece.lstrip(b"0145"))
                if calm:
                    # Bits count at the rising edge: at a 4 or 5 behind a 0 or 1.
                    tap.shift(piece[:calm].translate(self.RISING, b"01"))
                    at += calm
                    continue
            code = data[at]
            at += 1
            if code == ord("R"):
                answer.append(48 + (tap.register & 1))
            elif ord("4") <= code <= ord("7"):
                tap.step(code >> 1 & 1, code & 1)
        return bytes(answer)
