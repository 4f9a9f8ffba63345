#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module for one of the test machines.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/build.sh uml|stock|clippy|tc [MAKE ARGUMENT…]
Builds build/uml/sch_cake.ko or build/stock/sch_cake.ko, the latter for the distribution's kernel,
checks the code with clippy, or builds tc's plugin in build/tc. Warnings are errors." "$@"

flavour=${1-}
case $flavour in
uml) arch=(ARCH=um KDIR=/kernel/uml) ;;
# The compiler that built the kernel, by the name that it goes by there.
stock) arch=(KDIR=/kernel/stock CC=x86_64-linux-gnu-gcc-14) ;;
clippy) arch=(KDIR=/kernel/stock CC=x86_64-linux-gnu-gcc-14 CLIPPY=1) ;;
tc) arch=() ;;
*) die "uml, stock, clippy or tc? See --help" ;;
esac
shift

need_setup
if [ "$flavour" = tc ]; then
	in_rootfs make -s RUSTFLAGS=-Dwarnings "$@" plugin
	exit
fi
mkdir -p "$project/build/$flavour"
in_rootfs make -s "${arch[@]}" KRUSTFLAGS=-Dwarnings MO="/project/build/$flavour" "$@" modules
