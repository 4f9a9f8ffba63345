#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Builds the module for one of the test machines.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/build.sh uml|debug|stock|clippy|tc|asan [MAKE ARGUMENT…]
Builds build/uml/sch_cake.ko, build/debug/sch_cake.ko for the kernel that looks for errors, or
build/stock/sch_cake.ko for the distribution's kernel, checks the code with clippy, or builds tc's plugin in build/tc; asan builds it in build/asan for
AddressSanitizer. Warnings are errors." "$@"

flavour=${1-}
case $flavour in
uml) arch=(ARCH=um KDIR=/kernel/uml) ;;
debug) arch=(ARCH=um KDIR=/kernel/debug LLVM=-19) ;;
# The compiler that built the kernel, by the name that it goes by there.
stock) arch=(KDIR=/kernel/stock CC=x86_64-linux-gnu-gcc-14) ;;
clippy) arch=(KDIR=/kernel/stock CC=x86_64-linux-gnu-gcc-14 CLIPPY=1) ;;
tc | asan) arch=() ;;
*) die "uml, debug, stock, clippy, tc or asan? See --help" ;;
esac
shift

if [ "$flavour" = debug ]; then need_debug; else need_setup; fi
if [ "$flavour" = tc ]; then
	in_rootfs make -s RUSTFLAGS=-Dwarnings "$@" plugin
	exit
fi
if [ "$flavour" = asan ]; then
	# What is built for a named target is instrumented; build scripts and macros are not.
	# shellcheck disable=SC2016 # expands inside
	in_rootfs sh -ec 'triple=$(rustc -vV | sed -n "s/^host: //p")
		export CARGO_TARGET_DIR=/cargo/asan RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address
		cargo build --quiet --release --locked --target "$triple" -p q_cake
		mkdir -p build/asan
		cp "/cargo/asan/$triple/release/libq_cake.so" build/asan/q_cake.so
		ln -sf q_cake.so build/asan/q_cake_mq.so'
	exit
fi
mkdir -p "$project/build/$flavour"
in_rootfs make -s "${arch[@]}" KRUSTFLAGS=-Dwarnings MO="/project/build/$flavour" "$@" modules
