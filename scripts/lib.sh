# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts: where things are, how to say things. Sourced, not run.
# shellcheck shell=bash

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${CAKE_CACHE:-$HOME/.cache/cake}
rootfs=$cache/rootfs
kernel=$cache/kernel
# The script that runs; the others of the same name would all read alike.
self=scripts/$(basename "$0")

# die MESSAGE: one line that says what is missing and how to get it.
die() {
	printf '%s: %s\n' "$self" "$*" >&2
	exit 1
}

# usage_if_asked TEXT "$@": prints TEXT and ends if the first argument asks for help.
usage_if_asked() {
	local text=$1
	case ${2-} in
	-h | --help)
		printf '%s\n' "$text"
		exit 0
		;;
	esac
}

# need_setup: makes the machines if they are missing.
need_setup() {
	"$project/scripts/setup.sh" >&2
}

# need_debug: likewise, with the kernel that looks for errors.
need_debug() {
	"$project/scripts/setup.sh" debug >&2
}

# in_rootfs CMD…: runs CMD in the rootfs as root, in /project, with kernel and project in place.
#
# The mounts live in a namespace of their own and vanish with the command.
in_rootfs() {
	[ "$(id -u)" -eq 0 ] || die "must be root: it changes into the test machines' file system"
	mkdir -p "$rootfs/project" "$rootfs/kernel" "$rootfs/cargo" "$cache/cargo" "$kernel"
	# shellcheck disable=SC2016 # expands inside
	CAKE_ROOTFS=$rootfs CAKE_KERNEL=$kernel CAKE_CARGO=$cache/cargo CAKE_PROJECT=$project \
		unshare --mount --propagation private -- sh -c '
		set -e
		mount -t proc proc "$CAKE_ROOTFS/proc"
		mount -t sysfs -o ro sysfs "$CAKE_ROOTFS/sys"
		mount --rbind /dev "$CAKE_ROOTFS/dev"
		mount -t tmpfs tmpfs "$CAKE_ROOTFS/tmp"
		mount --bind "$CAKE_KERNEL" "$CAKE_ROOTFS/kernel"
		mount --bind "$CAKE_CARGO" "$CAKE_ROOTFS/cargo"
		mount --bind "$CAKE_PROJECT" "$CAKE_ROOTFS/project"
		if [ -e /etc/resolv.conf ]; then cat /etc/resolv.conf >"$CAKE_ROOTFS/etc/resolv.conf"; fi
		# Where the network is reached through a gateway of its own authority.
		trust=/etc/ssl/certs/ca-certificates.crt
		if [ -e $trust ] && [ -e "$CAKE_ROOTFS$trust" ]; then
			mount --bind $trust "$CAKE_ROOTFS$trust"
		fi
		exec chroot "$CAKE_ROOTFS" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin CARGO_HOME=/cargo/home \
			CARGO_TARGET_DIR=/cargo/target sh -c "cd /project && exec \"\$@\"" sh "$@"' sh "$@"
}
