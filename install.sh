#!/bin/sh
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause
#
# Bring what Dibber needs on Debian 12 or 13: the Debian packages that are missing (as root or with
# sudo), and a Python environment in build/venv with the versions of requirements.txt and
# constraints.txt. Says nothing when all is there. Run by every `make` target; may be run by hand.

set -eu
cd "$(dirname "$0")"
# Modules come from Python's own folders and the environment alone.
unset PYTHONPATH PYTHONHOME

# Firmware: gcc-riscv64-unknown-elf. Simulator: g++, make, nlohmann-json3-dev, libtomlplusplus-dev.
# The lint of the tests: perl, in which the front end of Verilator is written. Model checking: spin.
# Core files of the control program: gdb-multiarch. Tests of the library: mandoc, pkg-config, valgrind.
# Bitstreams into a model TAP, and gdb at a simulated card: openocd.
# Python environment: python3-venv, and ca-certificates to fetch its packages.
PACKAGES="ca-certificates g++ gcc-riscv64-unknown-elf gdb-multiarch libtomlplusplus-dev make mandoc
          nlohmann-json3-dev openocd perl pkg-config python3-venv spin valgrind"
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

version=$(python3 -I -c 'import sys; print("%d.%02d" % sys.version_info[:2])')
case $version in
3.11 | 3.12 | 3.13) ;;
[012].* | 3.0* | 3.10) die "python3 is $version; 3.11 is the oldest that the pinned packages run on" ;;
*) say "python3 is $version: newer than 3.13, the newest that was tried" ;;
esac

# The stamp holds everything that the environment was made from.
stamp=$VENV/.made-from
made_from=$(echo "$PWD $version" && cat requirements.txt constraints.txt install.sh)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$made_from" ]; then
	say "Python environment in $VENV: $(grep -c == constraints.txt) packages, about a minute"
	: >"$LOG/pip.log"
	rm -rf "$VENV"
	logged pip python3 -I -m venv "$VENV"
	logged pip "$VENV/bin/pip" install --disable-pip-version-check -r requirements.txt -c constraints.txt
	# The project's own packages are used where they stand.
	for folder in gateware software/python software/cli .; do
		echo "$PWD/$folder"
	done >"$("$VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dibber.pth"
	cat >"$VENV/bin/dibber" <<-END
		#!/bin/sh
		# Neither the current folder nor the caller's variables say which modules run.
		unset PYTHONPATH PYTHONHOME
		exec "$PWD/$VENV/bin/python" -P -s -m dibber_cli "\$@"
	END
	chmod +x "$VENV/bin/dibber"
	echo "$made_from" >"$stamp"
fi
