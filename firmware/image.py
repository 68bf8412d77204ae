"""Control program images: 64 bytes of header (struct firmware_header), then the content of the
SRAM.

    python firmware/image.py identity OUT.h KIB FEATURES SOURCE...   a C header with the identity
                                                                     that the program publishes
    python firmware/image.py pack OUT.dibfw IMAGE.bin...             with identity.h beside each
    python firmware/image.py verify FILE.dibfw

KIB is the size of the SRAM that the program is linked for. FEATURES has the bits of host register
FEATURES that it needs. A file has an image for each kind of card, one behind the other. A card gets
the first image that fits it, so the image that needs more features stands first.

`verify` ends with 0 and a line about each image, or with 1 and the reason why the file may not be
loaded.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateware"))

from dibber.interface.description import FIRMWARE_HEADER, INTERFACE, C, image_limit
from dibber.interface.generate import write_if_changed
from dibber.interface.schema import SCALARS

CHECKED = FIRMWARE_HEADER["entry"].offset  # from here on the CRC covers the header


class ImageError(Exception):
    """An image that may not be loaded. `name` gives the reason in a word or two."""

    name = "bad image"

    def __str__(self):
        return f"{self.name}: {super().__str__()}"


class BadMagic(ImageError):
    name = "bad magic"


class BadVersion(ImageError):
    name = "bad version"


class BadHash(ImageError):
    name = "bad hash"


class Truncated(ImageError):
    name = "truncated"


class BadCrc(ImageError):
    name = "bad crc"


class TooLarge(ImageError):
    name = "too large"


class BadHeader(ImageError):
    name = "bad header"


class NotForThisCard(ImageError):
    name = "no image fits"


# Header -------------------------------------------------------------------------------------------


def header_format(members=FIRMWARE_HEADER.members):
    """The header as a format of module struct: bytes as one string, words as integers."""
    codes = {1: "B", 2: "H", 4: "I", 8: "Q"}
    return "<" + "".join(
        f"{m.size}s" if m.kind == "u8" and m.count > 1 else codes[SCALARS[m.kind]] * m.count
        for m in members
    )


def _packed(values):
    return struct.pack(header_format(), *(values[m.name] for m in FIRMWARE_HEADER.members))


def _checked_sram(sram_bytes):
    """Return `sram_bytes` if an SRAM can have that size."""
    if sram_bytes & (sram_bytes - 1) or not 2 * C.SHARED_FROM_END <= sram_bytes <= C.SRAM_MAX:
        raise BadHeader(f"no card has {sram_bytes} bytes of SRAM")
    return sram_bytes


def pack(image, identity, build, sram_bytes, features=0):
    """An image with its header, as bytes; several of them make a file.

    image      : bytes, from address 0 on
    identity   : 32 bits, not 0
    build      : text, at most 28 bytes
    sram_bytes : of the card that it was linked for
    features   : bits of host register FEATURES that it needs
    """
    image += bytes(-len(image) % 4)
    limit = image_limit(_checked_sram(sram_bytes))
    if len(image) > limit:
        raise TooLarge(
            f"{len(image)} bytes, at most {limit} on a card with {sram_bytes >> 10} KiB of SRAM"
        )
    values = {
        "magic": C.FIRMWARE_MAGIC,
        "version": INTERFACE.version_word,
        "hash": INTERFACE.hash,
        "bytes": len(image),
        "crc": 0,
        "entry": 0,
        "identity": identity,
        "sram": sram_bytes,
        "features": features,
        "build": build.encode(),
    }
    values["crc"] = zlib.crc32(_packed(values)[CHECKED:] + image)
    return _packed(values) + image


def _first(file):
    """(header's members as a dict, image) of the first image in `file`; ImageError names the
    fault.
    """
    if len(file) >= 4 and int.from_bytes(file[:4], "little") != C.FIRMWARE_MAGIC:
        raise BadMagic(
            f"begins with 0x{int.from_bytes(file[:4], 'little'):08x}, not 0x{C.FIRMWARE_MAGIC:08x}"
        )
    if len(file) < FIRMWARE_HEADER.size:
        raise Truncated(f"{len(file)} bytes, the header alone has {FIRMWARE_HEADER.size}")
    header = dict(
        zip((m.name for m in FIRMWARE_HEADER.members), struct.unpack_from(header_format(), file))
    )
    image = file[FIRMWARE_HEADER.size : FIRMWARE_HEADER.size + header["bytes"]]
    if header["version"] != INTERFACE.version_word:
        raise BadVersion(
            f"built for interface version 0x{header['version']:08x}, this is "
            f"0x{INTERFACE.version_word:08x}"
        )
    if header["hash"] != INTERFACE.hash:
        raise BadHash(
            f"built for interface hash 0x{header['hash']:08x}, this is 0x{INTERFACE.hash:08x}"
        )
    limit = image_limit(_checked_sram(header["sram"]))
    if header["bytes"] > limit:
        raise TooLarge(
            f"{header['bytes']} bytes, at most {limit} on a card with {header['sram'] >> 10} KiB "
            f"of SRAM"
        )
    if len(image) < header["bytes"]:
        raise Truncated(f"{len(image)} bytes of image, the header says {header['bytes']}")
    if not image or header["bytes"] % 4 or header["entry"] or not header["identity"]:
        raise BadHeader(
            f"bytes {header['bytes']}, entry 0x{header['entry']:x}, identity "
            f"0x{header['identity']:08x}"
        )
    crc = zlib.crc32(file[CHECKED : FIRMWARE_HEADER.size] + image)
    if crc != header["crc"]:
        raise BadCrc(f"0x{crc:08x}, the header says 0x{header['crc']:08x}")
    return header, image


def images(file):
    """[(header's members as a dict, image)] of a file's bytes, at least one; ImageError names the
    fault of any of them.
    """
    found = []
    while file or not found:
        found.append(_first(file))
        file = file[FIRMWARE_HEADER.size + found[-1][0]["bytes"] :]
    return found


def choose(file, sram_bytes, features=0):
    """(header, image) of the first image of a file for a card with so much SRAM and these bits of
    FEATURES.
    """
    found = images(file)
    for header, image in found:
        if header["sram"] == sram_bytes and not header["features"] & ~features:
            return header, image
    sizes = " and ".join(f"{header['sram'] >> 10} KiB" for header, _ in found)
    raise NotForThisCard(
        f"images for {sizes} of SRAM, the card has {sram_bytes >> 10} KiB and features "
        f"0x{features:x}"
    )


# Identity -----------------------------------------------------------------------------------------


def identity(sources, sram_bytes):
    """CRC-32 of the sources' bytes and of the SRAM's size, mixed with the interface hash;
    never 0.
    """
    crc = zlib.crc32(sram_bytes.to_bytes(4, "little"))
    for path in sorted(sources, key=lambda p: pathlib.Path(p).name):
        crc = zlib.crc32(pathlib.Path(path).read_bytes(), crc)
    return (crc ^ INTERFACE.hash) or 1


def identity_header(sources, sram_bytes, features):
    """The C header with the program's identity, and the kind of card that it is for."""
    return (
        "/* Generated by firmware/image.py. */\n"
        f"#define MCP_IDENTITY 0x{identity(sources, sram_bytes):08x}u\n"
        f"#define MCP_SRAM_BYTES {sram_bytes}u\n"
        f"#define MCP_IMAGE_LIMIT {image_limit(sram_bytes)}u\n"
        f"#define MCP_FEATURES 0x{features:x}u\n"
    )


def _packed_file(path):
    """The image of a binary file, packed with the values of the identity.h beside it."""
    path = pathlib.Path(path)
    text = path.with_name("identity.h").read_text()
    words = {name: int(value, 0) for name, value in re.findall(r"#define MCP_(\w+) (\w+)u", text)}
    build = f"mcp {words['IDENTITY'] ^ INTERFACE.hash:08x}"
    return pack(path.read_bytes(), words["IDENTITY"], build, words["SRAM_BYTES"], words["FEATURES"])


def main(argv):
    command, arguments = (argv[1], argv[2:]) if len(argv) > 1 else (None, [])
    try:
        if command == "identity" and len(arguments) > 3:
            write_if_changed(
                pathlib.Path(arguments[0]),
                identity_header(arguments[3:], int(arguments[1]) << 10, int(arguments[2], 0)),
            )
        elif command == "pack" and len(arguments) > 1:
            file = b"".join(_packed_file(path) for path in arguments[1:])
            images(file)
            pathlib.Path(arguments[0]).write_bytes(file)
        elif command == "verify" and len(arguments) == 1:
            for header, image in images(pathlib.Path(arguments[0]).read_bytes()):
                build = header["build"].rstrip(b"\0").decode(errors="replace")
                limit = image_limit(header["sram"])
                print(
                    f"{arguments[0]}: {build}, for {header['sram'] >> 10} KiB of SRAM, "
                    f"{len(image)} bytes of {limit} "
                    f"({limit - len(image)} left), interface 0x{header['version']:08x} "
                    f"0x{header['hash']:08x}, "
                    f"identity 0x{header['identity']:08x}"
                )
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except (ImageError, OSError) as error:
        print(f"{arguments[-1] if command == 'verify' else command}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
