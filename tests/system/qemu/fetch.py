"""Bring QEMU and a kernel to test with, without installing either.

    python tests/system/qemu/fetch.py build/qemu

`vfio-user-pci` came with QEMU 10.1, which Debian has in trixie-backports only. Its packages and all
that they depend on, the C library too, are unpacked below the directory given and run with their
own loader, so that the same files serve on Debian 12 and 13, and no package of the system is
touched. apt does the work under a configuration of its own: empty status, own lists, the Debian
mirror of the system's sources.

Leaves `root/` (the unpacked packages), `vmlinux` (the kernel of the system's own suite,
decompressed, since a guest under TCG spends 10 s in the decompressor otherwise), `modules/`
(those of its modules that VFIO takes, numbered in the order in which they load), `driver-modules/`
(the same, of what tests of the driver take), `headers/` (what a module of ours is built against;
`headers/kernel` is the folder for `make -C`) and `tools/` (programs for guests, with the libraries
that they need, in the folders where a guest has them). No network is used when all six are there.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import lzma
import pathlib
import platform
import re
import shutil
import subprocess
import sys

QEMU_SUITES = ("trixie", "trixie-backports")
QEMU_OLDEST = (10, 1)

MODULES = ("vfio_iommu_type1", "vfio_pci")
DRIVER_MODULES = ("aer_inject", "bonding", "nfsd", "nfsv4")

# {package: its program in guests}
TOOLS = {"iperf3": "iperf3", "nuttcp": "nuttcp", "iputils-ping": "ping"}
LOADER = "lib64/ld-linux-x86-64.so.2"

LZ4_LEGACY_MAGIC = 0x184C2102
ZSTANDARD_MAGIC = 0xFD2FB528


class FetchError(Exception):
    """What could not be brought, and why."""


def run(command, **options):
    """Standard output of a command, or FetchError with what it said."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        raise FetchError(f"{' '.join(map(str, command[:2]))} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def system_suite():
    """(mirror, suite) of the main archive that this system installs from."""
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    targets = run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)"])
    for line in targets.splitlines():
        site, release, component = line.split()
        if (release, component) == (suite, "main"):
            return site, suite
    raise FetchError(f"no apt source offers suite '{suite}', component 'main'")


class Apt:
    """apt below one directory, with its own sources and nothing installed.

    Parameters
    ----------
    directory : where lists, archives and configuration go
    mirror    : address of a Debian archive
    suites    : names of the suites to take from it
    """

    def __init__(self, directory, mirror, suites):
        self.archives = directory / "archives"
        for path in (directory / "lists" / "partial", self.archives / "partial"):
            path.mkdir(parents=True, exist_ok=True)
        (directory / "status").write_text("")
        (directory / "sources.list").write_text(
            "".join(f"deb [arch=amd64] {mirror} {suite} main\n" for suite in suites)
        )
        settings = {
            "Dir::State": directory,
            "Dir::State::status": directory / "status",
            "Dir::State::lists": directory / "lists",
            "Dir::Cache": directory,
            "Dir::Cache::archives": self.archives,
            "Dir::Etc::sourcelist": directory / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Acquire::Languages": "none",
            "APT::Architecture": "amd64",
            # apt's own user may not be able to enter the directory
            "APT::Sandbox::User": "root",
            "Debug::NoLocking": "true",  # an unprivileged user cannot lock
        }
        self.options = [
            part for name, value in settings.items() for part in ("-o", f"{name}={value}")
        ]
        self.get("update", "-q")

    def get(self, *arguments, **options):
        return run(["apt-get", *self.options, *arguments], **options)

    def show(self, package):
        return run(["apt-cache", *self.options, "show", "--no-all-versions", package])

    def unpack(self, root):
        """Unpack every archive that was downloaded below `root`."""
        for archive in sorted(self.archives.glob("*.deb")):
            run(["dpkg-deb", "-x", archive, root])


def fetch_qemu(work, mirror, root):
    """Unpack QEMU with all it needs below `root`."""
    apt = Apt(work, mirror, QEMU_SUITES)
    apt.get(
        "install",
        "--download-only",
        "--no-install-recommends",
        "-y",
        "-q",
        "-t",
        QEMU_SUITES[-1],
        "qemu-system-x86",
    )
    version = re.search(
        r"^Version: (?:\d+:)?(\d+)\.(\d+)", apt.show(f"qemu-system-x86/{QEMU_SUITES[-1]}"), re.M
    )
    if tuple(map(int, version.groups())) < QEMU_OLDEST:
        raise FetchError(
            f"{QEMU_SUITES[-1]} offers QEMU {version.group(0)[9:]}; vfio-user-pci needs 10.1"
        )
    apt.unpack(root)
    for part in ("usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(root / part, ignore_errors=True)


def fetch_tools(work, mirror, suite, tools):
    """Put the programs of TOOLS, their libraries and the loader below `tools`."""
    apt, root = Apt(work, mirror, (suite,)), work / "unpacked"
    apt.get("install", "--download-only", "--no-install-recommends", "-y", "-q", *TOOLS)
    apt.unpack(root)
    # On Debian 13 the loader lies below usr/, and a link of another package leads there.
    loader = next(root / path for path in (LOADER, f"usr/{LOADER}") if (root / path).exists())
    folders = [root / part / "x86_64-linux-gnu" for part in ("usr/lib", "lib")]
    path = ":".join(map(str, folders))
    for folder in ("bin", "lib64", "lib/x86_64-linux-gnu"):
        (tools / folder).mkdir(parents=True)
    shutil.copy(loader, tools / LOADER)
    for program in TOOLS.values():
        found = next(p for p in (root / "usr/bin" / program, root / "bin" / program) if p.exists())
        shutil.copy(found, tools / "bin" / program)
        for library in re.findall(
            r"=> (\S+) ", run([loader, "--inhibit-cache", "--library-path", path, "--list", found])
        ):
            shutil.copy(library, tools / "lib/x86_64-linux-gnu")


def depends(apt, package, pattern):
    """Names of the packages that one depends on, of those that match."""
    line = re.search(r"^Depends: (.*)", apt.show(package), re.M).group(1)
    return re.findall(rf"(?:^|, )({pattern})", line)


def fetch_kernel(work, mirror, suite, vmlinux, modules, driver_modules, headers):
    """Write the decompressed kernel of the cloud flavour to `vmlinux`, its modules for VFIO below
    `modules`, and those for the driver below `driver_modules`. Unpack its headers, which have its
    very version, below `headers`.
    """
    apt = Apt(work, mirror, (suite,))
    package = depends(apt, "linux-image-cloud-amd64", r"linux-image-\S+")[0]
    apt.get("download", "-q", package, cwd=apt.archives)
    apt.unpack(work / "unpacked")
    release = package.removeprefix("linux-image-")
    fetch_headers(Apt(work / "headers", mirror, (suite,)), f"linux-headers-{release}", headers)
    image = next((work / "unpacked/boot").glob("vmlinuz-*")).read_bytes()
    vmlinux.write_bytes(decompress(image))
    for folder, wanted in ((modules, MODULES), (driver_modules, DRIVER_MODULES)):
        folder.mkdir(parents=True)
        for number, (name, module) in enumerate(in_order(work / "unpacked", wanted)):
            (folder / f"{number:02}-{name}.ko").write_bytes(module)


def fetch_headers(apt, package, headers):
    """Unpack a package of kernel headers, and what they share, below `headers`."""
    parts = depends(apt, package, r"linux-(?:headers|kbuild)-\S+")
    apt.get("download", "-q", package, *parts, cwd=apt.archives)
    apt.unpack(headers)
    sources = headers / "usr/src"
    makefile = sources / package / "Makefile"
    # Its only line includes the makefile of all flavours by its absolute name. Make knows where the
    # including one lies, wherever `headers` is moved to.
    included = pathlib.PurePath(makefile.read_text().split()[1]).relative_to("/usr/src")
    makefile.write_text(f"include $(dir $(lastword $(MAKEFILE_LIST)))../{included}\n")
    (headers / "kernel").symlink_to(f"usr/src/{package}")


def in_order(kernel, names):
    """(name, ELF file) of the modules `names` and all that they need, each after what it needs.

    A module says in its section .modinfo what it depends on. Debian packs modules with XZ since 13.
    """
    plain = lambda name: name.replace("-", "_")  # either is used, for one module
    paths = {plain(path.name.split(".")[0]): path for path in kernel.rglob("*.ko*")}
    loaded = {}

    def load(name):
        if name in loaded:
            return
        module = paths[name].read_bytes()
        if paths[name].suffix == ".xz":
            module = lzma.decompress(module)
        for needed in re.search(rb"\0depends=([^\0]*)\0", module).group(1).decode().split(","):
            if needed:
                load(plain(needed))
        loaded[name] = module

    for name in names:
        load(name)
    return loaded.items()


def has_modules(folder, names):
    """Whether each of `names` is among the modules of a folder that fetch_kernel() wrote."""
    return set(names) <= {path.stem.partition("-")[2] for path in folder.glob("*.ko")}


def decompress(image):
    """The ELF file inside a bzImage, whose payload Debian packs with LZ4 (12) or Zstandard (13).

    Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset and payload_length at
    0x248; the payload's last word is its size when unpacked. Python has neither decoder, but apt's
    own libraries do.
    """

    def word(data, offset, size=4):
        return int.from_bytes(data[offset : offset + size], "little")

    start = (word(image, 0x1F1, 1) + 1) * 512 + word(image, 0x248)
    payload = image[start : start + word(image, 0x24C)]
    size = word(payload, len(payload) - 4)
    elf = ctypes.create_string_buffer(size)
    length = 0
    if word(payload, 0) == LZ4_LEGACY_MAGIC:
        library, position = ctypes.CDLL("liblz4.so.1"), 4
        while position < len(payload) - 4:
            packed = word(payload, position)
            block = payload[position + 4 : position + 4 + packed]
            position += 4 + packed
            length += library.LZ4_decompress_safe(
                block, ctypes.byref(elf, length), packed, size - length
            )
    elif word(payload, 0) == ZSTANDARD_MAGIC:
        unpack = ctypes.CDLL("libzstd.so.1").ZSTD_decompress
        unpack.restype, unpack.argtypes = ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_size_t) * 2
        length = unpack(elf, size, ctypes.c_char_p(payload), len(payload) - 4)
    if length != size or not elf.raw.startswith(b"\x7fELF"):
        raise FetchError(
            f"the kernel's payload (magic {word(payload, 0):#010x}) did not unpack to an ELF file"
        )
    return elf.raw


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    names = ("root", "vmlinux", "modules", "driver-modules", "headers", "tools", "work")
    root, vmlinux, modules, driver_modules, headers, tools, work = (out / name for name in names)
    kernel = (vmlinux, modules, driver_modules, headers)
    # Folders of before have fewer modules.
    for folder, wanted in ((modules, MODULES), (driver_modules, DRIVER_MODULES)):
        if not has_modules(folder, wanted):
            shutil.rmtree(folder, ignore_errors=True)
    if root.exists() and tools.exists() and all(part.exists() for part in kernel):
        return
    try:
        mirror, suite = system_suite()
        # Under another name until it is whole, so that an interrupted run is not taken for a done
        # one.
        if not root.exists():
            partial = out / "root.partial"
            shutil.rmtree(partial, ignore_errors=True)
            fetch_qemu(work / "qemu", mirror, partial)
            partial.rename(root)
        # Modules load into the kernel that they came with only, and are built with its headers.
        if not all(part.exists() for part in kernel):
            partial = [part.with_suffix(".partial") for part in kernel]
            for old in (*partial[1:], *kernel[1:]):
                shutil.rmtree(old, ignore_errors=True)
            fetch_kernel(work / "kernel", mirror, suite, *partial)
            for old, new in zip(partial, kernel, strict=True):
                old.rename(new)
        if not tools.exists():
            partial = out / "tools.partial"
            shutil.rmtree(partial, ignore_errors=True)
            fetch_tools(work / "tools", mirror, suite, partial)
            partial.rename(tools)
        shutil.rmtree(work)
    except (FetchError, OSError) as error:
        sys.exit(f"fetch.py: {error}")


if __name__ == "__main__":
    main()
