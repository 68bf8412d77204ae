"""What cards there are: `dibber info` without a URI."""

# SPDX-License-Identifier: BSD-2-Clause

from pathlib import Path

import libdibber
from dibber.interface.description import LINK_STATE, MCP_STATE, C

from dibber_cli import paths, simulator

DEVICES = Path("/dev")
PCI_DEVICES = Path("/sys/bus/pci/devices")
PCI_IDENTITY = {"vendor": C.PCI_VENDOR, "device": C.PCI_DEVICE}


def is_ours(device):
    """Whether a PCI device, a folder of sysfs, is a Dibber card."""
    try:
        return all(int((device / name).read_text(), 16) == n for name, n in PCI_IDENTITY.items())
    except (OSError, ValueError):
        return False


def driver_of(device):
    """The name of the driver that a PCI device has, or None."""
    link = device / "driver"
    return link.resolve().name if link.is_symlink() else None


def number_of(device):
    """N of /dev/dibberN."""
    return int(device.name.removeprefix("dibber"))


def uris():
    """{URI: None, or why such a card cannot be looked at now}, of all cards that can be found.

    A card behind a UART cannot be told from another serial device, so none is listed.
    """
    found = {}
    devices = [d for d in DEVICES.glob("dibber*") if d.name.removeprefix("dibber").isdigit()]
    for device in sorted(devices, key=number_of):
        found[str(device)] = None
    for device in sorted(PCI_DEVICES.glob("*")):
        driver = driver_of(device)
        # Opening a card by VFIO resets it, so looking for cards does not open any.
        if is_ours(device) and driver != "dibber":
            found[f"vfio:{device.name}"] = f"driver {driver}" if driver else "no driver"
    if simulator.running():
        for socket in sorted(paths.run_directory().glob("card*.sock")):
            found[f"sim:{socket}"] = None
    return found


def look(uri):
    """What a card says of itself: {"node", "link_state", "mcp_state"}, or {"error"}."""
    try:
        with libdibber.Card(uri, observe=True) as card:
            values = card.info()
    except libdibber.DibberError as error:
        return {"error": str(error)}
    return {
        "node": values["node"],
        "link_state": LINK_STATE.name_of(values["link_state"]),
        "mcp_state": MCP_STATE.name_of(values["mcp_state"]),
    }


def found():
    """A list of {"uri", …} with what look() returns, or {"uri", "state"} of a card that was not
    opened.
    """
    return [
        {"uri": uri, **({"state": state} if state else look(uri))} for uri, state in uris().items()
    ]
