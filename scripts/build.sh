#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module for one of the test machines.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/build.sh uml|stock [MAKE ARGUMENT…]
Builds build/uml/sch_cake.ko or build/stock/sch_cake.ko, the latter for the distribution's kernel." "$@"

flavour=${1-}
case $flavour in
uml) arch=(ARCH=um KDIR=/kernel/uml) ;;
stock) arch=(KDIR=/kernel/stock) ;;
*) die "uml or stock? See --help" ;;
esac
shift

need_setup
mkdir -p "$project/build/$flavour"
in_rootfs make -s "${arch[@]}" MO="/project/build/$flavour" "$@" modules
