#!/bin/sh
# Run make targets of the committed tree in a bare Debian, made by debootstrap. To be run before each
# release, as root:
#
#     tests/release/try_debian.sh bookworm                  make bench, then make test
#     tests/release/try_debian.sh trixie test-quick         other targets
#     KEEP=1 tests/release/try_debian.sh trixie test-quick  in the root of the last run, with what is built there
#
# A root without make runs install.sh first. The root is build/debian/SUITE, some 4 GB. Mounts are
# made in a namespace of their own, so none is left behind.
#
# SPDX-License-Identifier: BSD-2-Clause

set -eu
cd "$(dirname "$0")/../.."

die() { echo "try_debian: $*" >&2; exit 1; }

suite=${1:?"try_debian: name a suite, bookworm or trixie"}
shift
[ $# -gt 0 ] || set -- bench test
[ "$(id -u)" = 0 ] || die "this makes a root file system and mounts into it: run it as root"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
[ -z "$(git status --porcelain)" ] || echo "try_debian: what is not committed is not tried" >&2

root=$PWD/build/debian/$suite
if [ -z "${KEEP:-}" ] || [ ! -d "$root/dibber" ]; then
	rm -rf "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 || {
		tail -n 20 "$root.log" >&2
		die "debootstrap failed; all of its output is in $root.log"
	}
fi

# With KEEP, a file that is the same keeps its time, and one that is gone is removed. A changed file is
# newer than what was built from it: `git archive` alone would give it the time of the commit.
fresh=$root/dibber.new
rm -rf "$fresh"
mkdir -p "$root/dibber" "$fresh"
git archive HEAD | tar -x -m -C "$fresh"
(cd "$root/dibber" && find . -path ./build -prune -o -path ./out -prune -o -type f -print) |
	while read -r file; do
		if cmp -s "$fresh/$file" "$root/dibber/$file"; then
			rm "$fresh/$file"
		else
			rm "$root/dibber/$file"
		fi
	done
cp -a "$fresh/." "$root/dibber/"
rm -rf "$fresh"

# How this machine reaches its package sources is the chroot's way too: names, and the certificates that it trusts.
for file in /etc/resolv.conf /etc/hosts; do
	[ ! -e $file ] || cp -L $file "$root$file"
done
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/trusted.crt"
fi

# shellcheck disable=SC2016 # expanded inside
unshare --mount --fork --pid --kill-child sh -eu -c '
	root=$1; shift
	mount --make-rprivate /
	mount -t proc proc "$root/proc"
	mount -t tmpfs tmpfs "$root/tmp"
	mount --rbind /dev "$root/dev"
	exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/etc/trusted.crt ${CI:+CI=$CI} \
		chroot "$root" sh -eu -c "
			cd /dibber
			command -v make >/dev/null || ./install.sh
			for target; do echo \"== make \$target\"; make \$target; done
		" - "$@"
' - "$root" "$@"
