#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command on the distribution's own kernel.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/vm.sh [--timeout SECONDS] [--cpus N | --icount] CMD…
Boots the distribution's kernel, unmodified, with our module installed as make modules_install does
it, and runs CMD as root in /project. The exit status is CMD's; 124 means that it took too long.
KVM is used where it works; there are 2 CPUs unless told otherwise. With --icount the machine has one CPU that executes an instruction each
nanosecond of its time." "$@"

timeout=600 cpus=2 icount=
while [ $# -gt 0 ]; do
	case $1 in
	--timeout) timeout=$2 && shift 2 ;;
	--cpus) cpus=$2 && shift 2 ;;
	--icount) icount="--qemu-opts=-icount shift=0,sleep=off" cpus=1 && shift ;;
	-*) die "unknown option $1; see --help" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || die "no command given; see --help"

need_setup
[ -e "$project/build/stock/sch_cake.ko" ] || "$project/scripts/build.sh" stock
version=$(cat "$cache/version")

# A pipe, since the machine's console would write over what is in a file.
# The file system of the machine is the rootfs; what is installed on top vanishes with it.
# shellcheck disable=SC2016 # expands inside
in_rootfs sh -ec '
	version=$1 timeout=$2 cpus=$3 icount=$4 command=$5
	modules=/usr/lib/modules/$version
	mkdir -p /tmp/upper /tmp/work
	mount -t overlay overlay -o "lowerdir=$modules,upperdir=/tmp/upper,workdir=/tmp/work" "$modules"
	make -s KDIR=/kernel/stock MO=/project/build/stock INSTALL_MOD_STRIP=1 modules_install >/tmp/install.log 2>&1 ||
		{ cat /tmp/install.log >&2; exit 1; }
	depmod "$version"

	# A machine in a cloud may have /dev/kvm and yet be unable to run a guest.
	vng() {
		timeout --foreground --kill-after=5 "$timeout" vng "$@" --run "/boot/vmlinuz-$version" \
			--memory 1G --cpus "$cpus" --user root -- "$command" </dev/null
	}
	accelerator=--disable-kvm
	if [ -z "$icount" ] && [ -w /dev/kvm ] && command=true timeout=30 vng >/dev/null 2>&1; then
		accelerator=
	fi
	command="cd /project && PYTHONDONTWRITEBYTECODE=1 HOME=/root $command"
	if [ -n "$icount" ]; then vng $accelerator "$icount"; else vng $accelerator; fi
' sh "$version" "$timeout" "$cpus" "$icount" "$(printf '%q ' "$@")" > >(cat)
