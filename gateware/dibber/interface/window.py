"""The remote window's constants and registers. `description.py` makes them part of the whole."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Field, Register, bank

WINDOW_CONSTANTS = (
    ("APERTURE_REGISTERS",  0x02000,
        "BAR 0: the registers of the remote window (bank `window`), on a card that has one"),
    ("APERTURE_BYTES",    0x1000000, "bytes of BAR 2, the remote window's aperture"),
    ("APERTURE_PAGE",       0x10000,
        "bytes of a page of the aperture; the last one is the control page: at 64 times an "
        "endpoint a load of 4 bytes waits for all stores before it, 4 bytes behind that one does "
        "not. Both return the endpoint's sequence; a store there closes all stream buffers"),
)

WINDOW = bank("window", "the remote window; only on a card with one",
    Register("GEOMETRY", "ro", "of the window", (
        Field("endpoint", 8, "endpoint whose slots and doorbell the window uses"),
        Field("queue",   16, "lines of the data path that the store queue takes"))),
    Register("CONTROL", "rw", "0 after power-up; a halt of the control program clears `enable`", (
        Field("enable", 1, "0: all pages are unmapped, and every load is all ones"),)),
    Register("HOLD", "rw",
        "cycles from the first store of a stream buffer until the buffer closes", (
        Field("cycles", 8, ""),), reset=32),
    Register("LOAD_LIMIT", "rw",
        "cycles from the arrival of a load to its answer, below 2²³. A host gives up after 50 ms",
        reset=1_250_000),
    Register("SCRATCH_LOW",  "rw", "bus address of the scratch page of 4096 bytes, aligned"),
    Register("SCRATCH_HIGH", "rw", ""),
    Register("SCRATCH_KEY",  "rw", "its region, of the window's endpoint, with LOCAL_WRITE"),
    Register("PAGE_KEY",     "rw", "next page entry: key of the region at the other node"),
    Register("PAGE_OFFSET_LOW",  "rw", "offset in the region of the page's first byte"),
    Register("PAGE_OFFSET_HIGH", "rw", ""),
    Register("PAGE_ACCESS", "rw", "", (
        Field("node",   8, "the other node"),
        Field("owner",  4, "endpoint whose sequence counts the errors of the page"),
        Field("load",   1, "loads are allowed"),
        Field("store",  1, "stores are allowed"),
        Field("atomic", 1, "a load of 4 or 8 bytes adds `addend` and returns the value before it"),
        Field("valid",  1, "0: not mapped"),
        Field("addend", 16, "signed"))),
    Register("PAGE_WRITE",   "wo", "the value is the page's number: write the entry"),
    Register("ROOM",         "ro", "lines of the data path that the store queue takes now"),
    Register("LAST", "ro", "the last command that failed", (
        Field("status", 8, "enum status"),)),
    Register("STORES",       "ro", "lines of the data path that were stored"),
    Register("PACKETS",      "ro", "puts that were made of them"),
    Register("LOADS",        "ro", "loads that got their value"),
    Register("OVERFLOWS",    "ro", "stored lines that were lost because the store queue was full"),
    Register("UNMAPPED",     "ro", "stream buffers and loads whose page is not mapped"),
    Register("FORBIDDEN",    "ro", "stream buffers and loads without the right"),
    Register("MISSHAPED",    "ro",
        "loads of more than 64 bytes, over a boundary of 64, or atomic and not of 4 or 8 aligned "
        "bytes"),
    Register("REFUSALS",     "ro", "commands that failed"),
    Register("LATE",         "ro",
        "loads and barriers that were answered with all ones because of LOAD_LIMIT, or because the "
        "window was off"),
)
