#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command on the distribution's own kernel.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/vm.sh [--timeout SECONDS] CMD…
Boots the distribution's kernel, unmodified, with our module installed as make modules_install does
it, and runs CMD as root in /project. The exit status is CMD's; 124 means that it took too long.
KVM is used where it works." "$@"

timeout=600
if [ "${1-}" = --timeout ]; then
	timeout=$2
	shift 2
fi
[ $# -gt 0 ] || die "no command given; see --help"

need_setup
[ -e "$project/build/stock/sch_cake.ko" ] || "$project/scripts/build.sh" stock
version=$(cat "$cache/version")

# A pipe, since the machine's console would write over what is in a file.
# The file system of the machine is the rootfs; what is installed on top vanishes with it.
# shellcheck disable=SC2016 # expands inside
in_rootfs sh -ec '
	version=$1 timeout=$2 command=$3
	modules=/usr/lib/modules/$version
	mkdir -p /tmp/upper /tmp/work
	mount -t overlay overlay -o "lowerdir=$modules,upperdir=/tmp/upper,workdir=/tmp/work" "$modules"
	make -s KDIR=/kernel/stock MO=/project/build/stock INSTALL_MOD_STRIP=1 modules_install >/tmp/install.log 2>&1 ||
		{ cat /tmp/install.log >&2; exit 1; }
	depmod "$version"

	# A machine in a cloud may have /dev/kvm and yet be unable to run a guest.
	vng() {
		timeout --foreground --kill-after=5 "$timeout" vng "$@" --run "/boot/vmlinuz-$version" \
			--memory 1G --cpus 2 --user root -- "$command" </dev/null
	}
	accelerator=--disable-kvm
	if [ -w /dev/kvm ] && command=true timeout=30 vng >/dev/null 2>&1; then
		accelerator=
	fi
	command="cd /project && PYTHONDONTWRITEBYTECODE=1 HOME=/root $command"
	vng $accelerator
' sh "$version" "$timeout" "$(printf '%q ' "$@")" > >(cat)
