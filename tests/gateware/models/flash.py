"""A serial NOR flash in plain Python, as the datasheets of N25Q, W25Q and S25FL have what they
share.

READ (03, 13), RDID (9F), RDSR (05), WREN (06), WRDI (04), PP (02, 12), SE of 64 KiB (D8, DC), of 4
KiB (20, 21). Programming clears bits, and wraps in its page; both it and erasing want the write
enable latch, which they clear, and keep the flash busy, when it answers RDSR alone.
"""

# SPDX-License-Identifier: BSD-2-Clause

PAGE = 256

READ, READ4, IDENTITY, STATUS = 0x03, 0x13, 0x9F, 0x05
ENABLE, DISABLE, PROGRAM, PROGRAM4 = 0x06, 0x04, 0x02, 0x12
# bytes of address, bytes erased
ERASES = {0xD8: (3, 65536), 0xDC: (4, 65536), 0x20: (3, 4096), 0x21: (4, 4096)}
# bits of the status
BUSY, LATCH = 1, 2


class Flash:
    """A transfer at a time; no clock of its own.

    Parameters
    ----------
    size  : bytes, a power of two
    jedec : what RDID begins with
    busy  : how many RDSR a program or an erase is seen by

    Attributes for tests
    --------------------
    data   : bytearray
    status : register; protection bits may be set
    wrong  : commands that the datasheet does not have, or that came while it was busy
    """

    def __init__(self, size=1 << 24, jedec=b"\xef\x40\x18", busy=2):
        self.data, self.size, self.jedec, self.patience = (
            bytearray(b"\xff") * size,
            size,
            jedec,
            busy,
        )
        self.status, self.busy, self.wrong = 0, 0, []

    def transfer(self, sent):
        """What comes back of the bytes `sent` while it is selected, as many as those."""
        command, rest = sent[0], sent[1:]
        if command == STATUS:
            answer = b""
            for _ in rest:
                self.busy -= self.busy > 0
                answer += bytes([self.status | (BUSY if self.busy else 0)])
            return b"\xff" + answer
        if self.busy:
            self.wrong.append(command)
            return b"\xff" * len(sent)
        answer = b"\xff" * len(sent)
        if command == IDENTITY:
            answer = b"\xff" + (self.jedec + bytes(20))[: len(rest)]
        elif command in (READ, READ4):
            wide, at = self._address(command == READ4, rest)
            answer = b"\xff" * (1 + wide) + bytes(
                self.data[(at + n) % self.size] for n in range(len(rest) - wide)
            )
        elif command == ENABLE:
            self.status |= LATCH
        elif command == DISABLE:
            self.status &= ~LATCH
        elif command in (PROGRAM, PROGRAM4):
            wide, at = self._address(command == PROGRAM4, rest)
            if self._begins(len(rest) > wide):
                page, first = at & -PAGE, at % PAGE
                buffer = {}
                for n, byte in enumerate(rest[wide:]):
                    buffer[(first + n) % PAGE] = byte
                for place, byte in buffer.items():
                    self.data[page + place] &= byte
        elif command in ERASES:
            wide, length = ERASES[command]
            _, at = self._address(wide == 4, rest)
            if self._begins(len(rest) == wide):
                self.data[at & -length : (at & -length) + length] = b"\xff" * length
        elif command != 0xFF:
            self.wrong.append(command)
        return answer[: len(sent)]

    def _address(self, wide, rest):
        bytes_ = 4 if wide else 3
        return bytes_, int.from_bytes(rest[:bytes_], "big") % self.size

    def _begins(self, whole):
        """Is a change begun? It is not without the latch, nor under protection."""
        if not whole or not self.status & LATCH or self.status & 0x1C:
            self.status &= ~LATCH
            return False
        self.status &= ~LATCH
        self.busy = self.patience + 1
        return True


class Pins:
    """A Flash at its pins, mode 0: a bit is taken where the clock rises, and driven where it falls.
    A transfer is made when it is
    deselected. The answer must be known before, so reading commands are made byte by byte."""

    def __init__(self, flash):
        self.flash, self.bits, self.sent, self.byte, self.clk, self.miso, self.answer = (
            flash,
            0,
            b"",
            0,
            0,
            1,
            0xFF,
        )

    def step(self, cs_n, clk, mosi):
        """Levels; returns MISO's from now on."""
        if cs_n:
            if self.sent and not self.bits and self.sent[0] not in (READ, READ4, IDENTITY, STATUS):
                self.flash.transfer(self.sent)
            self.bits, self.sent, self.byte, self.clk, self.miso, self.answer = (
                0,
                b"",
                0,
                0,
                1,
                0xFF,
            )
            return self.miso
        if clk and not self.clk:
            self.byte = (self.byte << 1 | mosi) & 0xFF
            self.bits = (self.bits + 1) % 8
            if self.bits == 0:
                self.sent += bytes([self.byte])
                self.answer = self._next()
        elif not clk and self.clk:
            self.miso = self.answer >> 7 - self.bits & 1
        self.clk = clk
        return self.miso

    def _next(self):
        """The byte that comes back next."""
        if self.sent[0] == STATUS:
            return self.flash.transfer(bytes([STATUS, 0]))[1]
        if self.sent[0] in (READ, READ4, IDENTITY):
            return self.flash.transfer(self.sent + b"\0")[-1]
        return 0xFF
