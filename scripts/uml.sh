#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command in User Mode Linux.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/uml.sh [--debug] [--time-travel] [--memory SIZE] [--timeout SECONDS] CMD…
Boots User Mode Linux on the rootfs and runs CMD as root in /project. The exit status is CMD's;
124 means that it took too long, 125 that the guest died. With --time-travel the guest's time
passes only while it waits, at no cost of CPU. --debug takes the kernel that looks for errors, which
is built when it is first asked for. The guest's log is build/log/uml.*.dmesg." "$@"

memory=1G timeout=600 tree=uml seccomp=on append=()
while [ $# -gt 0 ]; do
	case $1 in
	# A guest with KASAN dies under seccomp.
	--debug) tree=debug seccomp=off && shift ;;
	--time-travel) append+=(time-travel=inf-cpu) && shift ;;
	--memory) memory=$2 && shift 2 ;;
	--timeout) timeout=$2 && shift 2 ;;
	--) shift && break ;;
	-*) die "unknown option $1; see --help" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || die "no command given; see --help"

if [ "$tree" = debug ]; then need_debug; else need_setup; fi
mkdir -p "$project/build/run" "$project/build/log"
run=$(mktemp -d "$project/build/run/uml.XXXXXX")
name=$(basename "$run")
trap 'rm -rf "$run"' EXIT
printf '%q ' "$@" >"$run/command"

status=0
# TMPDIR: UML keeps the guest's memory in a file there; tmpfs on /dev/shm is quick.
in_rootfs env TMPDIR=/dev/shm timeout --kill-after=5 "$timeout" \
	"/kernel/$tree/linux" mem="$memory" root=/dev/root rootfstype=hostfs rootflags=/ rw \
	init=/project/scripts/guest-init.sh CAKE_RUN="/project/build/run/$name" CAKE_TREE="$tree" \
	seccomp="$seccomp" umid="$name" uml_dir=/tmp loglevel=1 con=null con0=fd:0,fd:1 ${append[@]+"${append[@]}"} \
	</dev/null 2>"$run/uml.log" > >(grep --line-buffered --text -v '^reboot: Power down' || true) || status=$?

[ ! -e "$run/dmesg" ] || mv "$run/dmesg" "$project/build/log/$name.dmesg"
[ "$status" -ne 124 ] || die "the guest did not finish within $timeout s"
[ -e "$run/status" ] || {
	tail -n 20 "$run/uml.log" >&2
	printf '%s: the guest died (status %s)\n' "$self" "$status" >&2
	exit 125
}
exit "$(cat "$run/status")"
