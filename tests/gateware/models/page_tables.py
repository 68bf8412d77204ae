"""Page tables in host memory, and what they say of an address."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import C


def paged(region, offset, bits=64):
    return 1 << bits - 1 | region << bits - 7 | offset


class Tables:
    """Page tables of a few regions at random places; their content, byte by byte and by address.

    missing : share of absent pages
    shifts  : log2 of the pages' bytes, one chosen for each region
    bits    : of addresses: a page with more bits is absent
    """

    def __init__(
        self, random, regions, pages=200, missing=0.0, shifts=(12, 12, 13, 16, 21, 30), bits=64
    ):
        self.bits = bits
        self.shift, self.table, self.pages = {}, {}, {}
        for n, region in enumerate(random.sample(range(C.REGIONS), regions)):
            shift = random.choice(shifts)
            self.shift[region] = shift
            self.table[region] = random.getrandbits(24) << 20 | n << 16
            self.pages[region] = [
                random.getrandbits(40 - shift + 10) << shift | (random.random() < missing)
                for _ in range(pages)
            ]
        self.extent = pages

    def memory(self, address):
        for region, start in self.table.items():
            number, byte = divmod(address - start, 8)
            if 0 <= number < len(self.pages[region]) + 8:
                value = self.pages[region][number] if number < len(self.pages[region]) else 0
                return value >> 8 * byte & 0xFF
        raise AssertionError(f"a read of {address:x}, where no table is")

    def where(self, address):
        """(bus address, fault) of an address, paged or not."""
        if not address >> self.bits - 1:
            return address, 0
        region, offset = address >> self.bits - 7 & 63, address & (1 << self.bits - 7) - 1
        page = self.pages[region][offset >> self.shift[region]]
        return (
            (None, 1)
            if page & 1 or page >> self.bits
            else (page | offset & (1 << self.shift[region]) - 1, 0)
        )

    def random_address(self, random, near=None):
        """One that lies near the last, as of a walk, or anywhere; some are no paged ones."""
        if random.random() < 0.15:
            return random.getrandbits(self.bits - 4) & ~0xFFF
        region = random.choice(list(self.shift))
        size = min(self.extent << self.shift[region], 1 << self.bits - 7)
        return paged(
            region, (near if near is not None else random.randrange(size)) % size, self.bits
        )
