#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs the module that was built for the distribution's kernel, and the plugin for tc.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/install.sh [--remove] [ROOT]
Installs build/stock/sch_cake.ko, built by scripts/build.sh stock, for the kernel that it was built
for, under ROOT (default /), and build/tc/q_cake.so with its manual page, if it was built. From then
on modprobe, and so tc, takes the module rather than the kernel's own. --remove is the way back. A module that is loaded stays loaded until rmmod sch_cake." "$@"

remove=
if [ "${1-}" = --remove ]; then
	remove=yes
	shift
fi
root=${1-/}
[ -d "$root" ] || die "there is no $root"
module=$project/build/stock/sch_cake.ko
[ -e "$module" ] || die "$module is missing: scripts/build.sh stock makes it"
command -v make >/dev/null || die "needs make: apt-get install make"
command -v modinfo >/dev/null || die "needs modinfo and depmod: apt-get install kmod"
version=$(modinfo -F vermagic "$module" | cut -d' ' -f1)
modules=${root%/}/lib/modules/$version
[ -d "$modules" ] || die "$root has no kernel $version: install it, or scripts/setup.sh --update and build again"
[ -w "$modules" ] || die "may not write to $modules: try sudo"

if [ -n "$remove" ]; then
	rm -f "$modules/updates/sch_cake.ko"
	make -s -C "$project" plugin_remove DESTDIR="${root%/}"
	echo "Removed; modprobe takes the kernel's own sch_cake again."
else
	install -D -m 644 "$module" "$modules/updates/sch_cake.ko"
	echo "Installed $modules/updates/sch_cake.ko."
	if [ -e "$project/build/tc/q_cake.so" ]; then
		make -s -C "$project" plugin_install DESTDIR="${root%/}"
	else
		echo "The plugin for tc was not built, so that single tins cannot be set: scripts/build.sh tc makes it."
	fi
fi
depmod -b "$root" "$version"
modinfo -b "$root" -k "$version" -F filename sch_cake
