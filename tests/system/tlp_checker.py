"""Rules of PCI Express that every TLP of a trace must keep.

The TLPs are decoded and checked by cocotbext-pcie, which shares no code with the gateware or with
the host model. Section numbers are those of the PCI Express Base Specification, revision 3.0.

    python tests/system/tlp_checker.py TRACE [--max-payload 256] [--max-request 512]

The trace is what `dibber-sim --tlp-trace` writes; its format stands in hw/sim/trace.h.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import contextlib
import io
import struct
import sys

from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from dibber_cli.pipe import quiet

MAGIC = b"DIBTLP1\n"
RECORD = struct.Struct("<QHBB")

WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
READS = (TlpType.MEM_READ, TlpType.MEM_READ_64)
COMPLETIONS = (TlpType.CPL, TlpType.CPL_DATA)

# A byte enable field of a request of more than one DW has no holes (2.2.5).
FIRST_BE = (0b1111, 0b1110, 0b1100, 0b1000)
LAST_BE = (0b1111, 0b0111, 0b0011, 0b0001)


def records(path):
    """(picoseconds, card, from_card, bytes) of each TLP. ValueError: it is no such file."""
    with open(path, "rb") as f:
        if f.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path} is not a TLP trace")
        while head := f.read(RECORD.size):
            if len(head) < RECORD.size:
                raise ValueError(f"{path} ends inside a record")
            at, size, card, up = RECORD.unpack(head)
            raw = f.read(size)
            if len(raw) < size:
                raise ValueError(f"{path} ends inside a TLP")
            yield at, card, bool(up), raw


class Checker:
    """Holds the rules against one card's TLPs. `errors` are sentences; `counts` what was seen."""

    def __init__(self, max_payload=256, max_request=512, extended_tags=True):
        self.max_payload = max_payload
        self.max_request = max_request
        self.tags = 256 if extended_tags else 32
        self.errors = []
        self.counts = collections.Counter()
        self.card_reads = {}  # tag -> bytes outstanding
        self.host_reads = {}  # (requester, tag) -> bytes outstanding
        self.most_in_flight = 0

    def error(self, at, tlp, text):
        self.errors.append(f"{at / 1000:.1f} ns: {text}: {tlp!r}")

    def take(self, at, from_card, raw):
        """One TLP, in the order of time. The decoder's own check has the 4 KiB rule (2.2.7) and
        lengths.
        """
        try:
            tlp = Tlp.unpack(raw)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                good = tlp.check()
            if not good:
                return self.error(at, tlp, said.getvalue().partition(": Tlp")[0])
        except Exception as reason:  # The decoder raises whatever the broken bytes lead to.
            return self.errors.append(
                f"{at / 1000:.1f} ns: does not decode ({reason!r}): {raw.hex()}"
            )
        if tlp.get_header_size() + tlp.get_payload_size() != len(raw):
            self.error(at, tlp, f"{len(raw)} bytes long, its header says otherwise")
        self.counts["from card" if from_card else "to card", tlp.fmt_type.name] += 1
        if tlp.fmt_type in COMPLETIONS:
            return self.completion(at, from_card, tlp)
        if tlp.fmt_type not in WRITES + READS:
            return self.error(at, tlp, "neither memory request nor completion")
        self.byte_enables(at, tlp)
        if tlp.fmt_type in (TlpType.MEM_WRITE_64, TlpType.MEM_READ_64) and tlp.address < 1 << 32:
            self.error(at, tlp, "64-bit header for an address below 4 GiB (2.2.4.1)")
        if tlp.fmt_type in WRITES:
            if tlp.length * 4 > self.max_payload:
                self.error(at, tlp, f"payload above {self.max_payload} (2.2.2)")
        else:
            self.read(at, from_card, tlp)

    def byte_enables(self, at, tlp):
        if tlp.length == 1:
            if tlp.last_be:
                self.error(at, tlp, "last byte enables in a request of one DW (2.2.5)")
        elif tlp.first_be not in FIRST_BE or tlp.last_be not in LAST_BE:
            self.error(at, tlp, "byte enables with holes in a request of several DW (2.2.5)")

    def read(self, at, from_card, tlp):
        if not from_card:
            self.host_reads[int(tlp.requester_id), tlp.tag] = max(1, tlp.get_be_byte_count())
            return
        if tlp.length * 4 > self.max_request:
            self.error(at, tlp, f"read of more than {self.max_request} (2.2.7)")
        if tlp.tag >= self.tags:
            self.error(at, tlp, f"tag beyond {self.tags} (2.2.6.2)")
        if tlp.tag in self.card_reads:
            self.error(at, tlp, "tag in use (2.2.6.2)")
        self.card_reads[tlp.tag] = max(1, tlp.get_be_byte_count())
        self.most_in_flight = max(self.most_in_flight, len(self.card_reads))

    def completion(self, at, from_card, tlp):
        reads, key = (
            (self.host_reads, (int(tlp.requester_id), tlp.tag))
            if from_card
            else (self.card_reads, tlp.tag)
        )
        if key not in reads:
            return self.error(at, tlp, "completes no read (2.3.2)")
        if tlp.status != CplStatus.SC:
            del reads[key]
            return
        outstanding = reads[key]
        if (tlp.byte_count or 4096) != outstanding:
            self.error(at, tlp, f"byte count, with {outstanding} outstanding (2.2.9)")
        carried = min(outstanding, tlp.length * 4 - tlp.lower_address % 4)
        if tlp.length * 4 > self.max_payload:
            self.error(at, tlp, f"payload above {self.max_payload} (2.2.2)")
        reads[key] -= carried
        if reads[key] == 0:
            del reads[key]
        elif (tlp.lower_address + carried) % 64:
            self.error(at, tlp, "split off the read completion boundary (2.3.1.1)")

    def finish(self):
        """At the end of a run that was left idle: nothing may be unanswered."""
        for tag in self.card_reads:
            self.errors.append(f"end: the card's read with tag {tag} was never completed")
        for requester, tag in self.host_reads:
            self.errors.append(f"end: the host's read {requester:04x}/{tag} was never completed")


def check(path, finished=True, **limits):
    """{card: Checker} after the whole trace. `finished`: no read may be left over."""
    checkers = {}
    for at, card, from_card, raw in records(path):
        checkers.setdefault(card, Checker(**limits)).take(at, from_card, raw)
    if finished:
        for checker in checkers.values():
            checker.finish()
    return checkers


def main():
    parser = argparse.ArgumentParser(description="Check every TLP of a trace.")
    parser.add_argument("trace")
    parser.add_argument("--max-payload", type=int, default=256)
    parser.add_argument("--max-request", type=int, default=512)
    args = parser.parse_args()
    bad = 0
    for card, checker in sorted(
        check(args.trace, max_payload=args.max_payload, max_request=args.max_request).items()
    ):
        seen = ", ".join(f"{n} {kind} {way}" for (way, kind), n in sorted(checker.counts.items()))
        print(
            f"card {card}: {seen}; most reads in flight {checker.most_in_flight}; "
            f"{len(checker.errors)} errors"
        )
        for text in checker.errors[:20]:
            print(f"  {text}")
        bad += len(checker.errors)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(quiet(main))
