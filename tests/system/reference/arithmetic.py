"""What TLP arithmetic gives LitePCIe's DMA: payload bytes a second of long contiguous transfers.

    writer = min(wire, stream) of writes
    reader = min(wire, stream) of completions, or what its tags allow if that is less:
             tags × request / (latency of the first completion + time of the others)

A TLP is a header of 12 bytes, the payload and the framing on the wire; on the stream it is whole
beats.
"""

# SPDX-License-Identifier: BSD-2-Clause

HEADER = 12  # bytes: 3 DW; addresses lie below 4 GiB
TAGS = 8  # LiteX add_pcie()'s default max_pending_requests
# of LitePCIe for each completion: IDLE of its header extracter, WAIT of its TLP controller
IDLE_CYCLES = 2


def wire(pcie, payload):
    """Payload bytes a second of TLPs with `payload` bytes, one after the other on the wire."""
    rate = (
        pcie["lanes"] * pcie["rate_gbps"] * 1e9 * 8 / 10 / 8 * (1 - pcie["overhead_percent"] / 100)
    )
    return rate * payload / (HEADER + payload + pcie["framing_bytes"])


def stream(card, payload, idle=0):
    """The same on the stream between hard block and LitePCIe."""
    beats = -(-(HEADER + payload) * 8 // card["data_width"]) + idle
    return card["clock_mhz"] * 1e6 * payload / beats


def writer(profile):
    payload = profile["pcie"]["max_payload"]
    return min(wire(profile["pcie"], payload), stream(profile["card"], payload))


def completion(pcie):
    """Payload bytes of one completion of an aligned read."""
    if pcie["completion_split"] == "boundary":
        return pcie["read_completion_boundary"]
    return min(pcie["max_payload"], pcie["max_read_request"])


def by_tags(profile):
    """A tag is busy from its request leaving to its last completion being in; then the next request
    leaves.
    """
    pcie, payload = profile["pcie"], completion(profile["pcie"])
    rate = min(wire(pcie, payload), stream(profile["card"], payload, IDLE_CYCLES))
    request = pcie["max_read_request"]
    return TAGS * request / (pcie["read_latency_ns"] * 1e-9 + request / rate)


def reader(profile):
    payload = completion(profile["pcie"])
    return min(
        wire(profile["pcie"], payload),
        stream(profile["card"], payload, IDLE_CYCLES),
        by_tags(profile),
    )
