#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs the coverage-guided fuzzers.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/fuzz.sh [--seconds N] [--keep] [TARGET…]
Has libFuzzer look for inputs that break what tests/fuzz/src/target.rs asks of the parsers and of
the scheduler, N seconds (default: 600) for each of headers, acks, requests and operations. It starts
from tests/fuzz/corpus, and --keep adds what covers more to it. An input that breaks something is
left in build/fuzz; scripts/fuzz.sh --seconds 0 TARGET plays the corpus alone.
Prints a line 'TARGET: N executions in S s' for each; exit status 1 if anything broke." "$@"

seconds=600 keep=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 && shift 2 ;;
	--keep) keep=1 && shift ;;
	-*) die "unknown option $1; see --help" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || set -- headers acks requests operations

need_setup
# Only what is named by --target is instrumented; build scripts and macros are not.
# shellcheck disable=SC2016 # expands inside
in_rootfs sh -ec 'seconds=$1 keep=$2
	shift 2
	coverage="-Cpasses=sancov-module -Ccodegen-units=1 -Cdebug-assertions --cfg=fuzzing"
	for argument in level=4 inline-8bit-counters pc-table trace-compares; do
		coverage="$coverage -Cllvm-args=-sanitizer-coverage-$argument"
	done
	triple=$(rustc -vV | sed -n "s/^host: //p")
	export CARGO_TARGET_DIR=/cargo/fuzz
	RUSTFLAGS=$coverage cargo build --quiet --release --locked --target "$triple" -p cake_fuzz
	failed=
	for target; do
		found=build/fuzz/$target
		kept=tests/fuzz/corpus/$target
		[ -d "$kept" ] || { echo "no fuzzer is named $target; see --help" >&2; exit 1; }
		mkdir -p "$found"
		limit=-max_total_time=$seconds
		[ "$seconds" != 0 ] || limit=-runs=0
		if "/cargo/fuzz/$triple/release/$target" "$limit" -max_len=4096 -timeout=10 -print_final_stats=1 \
			-artifact_prefix="build/fuzz/$target-" "$found" "$kept" >"$found.log" 2>&1; then
			executions=$(sed -n "s/^stat::number_of_executed_units: *//p" "$found.log")
			echo "$target: $executions executions in $seconds s"
		else
			failed=1
			tail -n 40 "$found.log"
			echo "$target: broken; see build/fuzz/$target-*"
		fi
		[ -z "$keep" ] || "/cargo/fuzz/$triple/release/$target" -merge=1 "$kept" "$found" >>"$found.log" 2>&1
	done
	[ -z "$failed" ]' sh "$seconds" "$keep" "$@"
