# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Page tables in host memory, and what they say of an address."""

from dibber.interface.description import C


def paged(region, offset):
    return 1 << 63 | region << 57 | offset


class Tables:
    """Page tables of a few regions at random places; what they say, byte by byte and by address.

    missing : share of the pages that are not there
    shifts  : log2 of the pages' bytes, one chosen for each region
    """
    def __init__(self, random, regions, pages=200, missing=0.0, shifts=(12, 12, 13, 16, 21, 30)):
        self.shift, self.table, self.pages = {}, {}, {}
        for n, region in enumerate(random.sample(range(C.REGIONS), regions)):
            shift = random.choice(shifts)
            self.shift[region] = shift
            self.table[region] = random.getrandbits(24) << 20 | n << 16
            self.pages[region] = [random.getrandbits(40 - shift + 10) << shift | (random.random() < missing)
                                  for _ in range(pages)]
        self.extent = pages

    def memory(self, address):
        for region, start in self.table.items():
            number, byte = divmod(address - start, 8)
            if 0 <= number < len(self.pages[region]) + 8:
                value = self.pages[region][number] if number < len(self.pages[region]) else 0
                return value >> 8*byte & 0xff
        raise AssertionError(f"a read of {address:x}, where no table is")

    def where(self, address):
        """(bus address, fault) of an address, paged or not."""
        if not address >> 63:
            return address, 0
        region, offset = address >> 57 & 63, address & (1 << 57) - 1
        page = self.pages[region][offset >> self.shift[region]]
        return (None, 1) if page & 1 else (page | offset & (1 << self.shift[region]) - 1, 0)

    def random_address(self, random, near=None):
        """One that lies near the last, as of a walk, or anywhere; some are no paged ones."""
        if random.random() < 0.15:
            return random.getrandbits(60) & ~0xfff
        region = random.choice(list(self.shift))
        size   = self.extent << self.shift[region]
        return paged(region, (near if near is not None else random.randrange(size)) % size)
