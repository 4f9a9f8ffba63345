#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs the tests and counts them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/test.sh [--full] [PART…]
Runs all tests, or those of the parts named; --full means longer runs, and more of them:
  quick   formatting, lints and host tests: no machine needed beyond the rootfs
  build   the module for both kernels, with lints; no panic in the object
  uml     the kernel selftests in User Mode Linux
  differential  the same traffic through the C module and ours, in User Mode Linux
  tdc     upstream's cake.json and cake_mq.json, and our tins.json, in User Mode Linux
  experiments  the seed, a greedy flow and a hosted game, and what they must show
  stock   the demo as assertions, and cake.json, in the distribution's kernel
Prints a line for each test and 'N passed, N failed' at the end." "$@"

log=$project/build/log
mkdir -p "$log"
results=$log/results
: >"$results"

# check NAME CMD…: one test; its output is shown only if it fails.
check() {
	local name=$1
	shift
	if "$@" >"$log/check.log" 2>&1; then
		echo "ok - $name" | tee -a "$results"
	else
		sed 's/^/# /' "$log/check.log"
		echo "not ok - $name" | tee -a "$results"
	fi
}

# ktap NAME CMD…: a program that prints KTAP; each of its results counts. It must end well, and
# with as many results as it announced.
ktap() {
	local name=$1 status=0 planned seen
	shift
	echo "# $name"
	"$@" 2>&1 | tee "$log/$name.log" | grep --line-buffered -E '^(#|(not )?ok )' || true
	status=${PIPESTATUS[0]}
	sed -nE "s/^((not )?ok) [0-9]+ (- )?(.*)/\1 - $name: \4/p" "$log/$name.log" >>"$results"
	planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log/$name.log" | head -n 1)
	seen=$(grep -cE '^(not )?ok ' "$log/$name.log" || true)
	if [ "${planned:-0}" -eq 0 ] || [ "$planned" -ne "$seen" ]; then
		tail -n 20 "$log/$name.log" | sed 's/^/# /'
		echo "not ok - $name: ran to its end (status $status, $seen of ${planned:-0} tests)" | tee -a "$results"
	elif [ "$status" -ne 0 ] && ! grep -q '^not ok ' "$log/$name.log"; then
		echo "not ok - $name: exit status $status" | tee -a "$results"
	fi
}

# cargo_test ARGUMENT…: cargo's tests, one line each.
cargo_test() {
	local status=0
	in_rootfs cargo test "$@" >"$log/cargo.log" 2>&1 || status=$?
	sed -nE 's/^test (.*) \.\.\. ok$/ok - host: \1/p; s/^test (.*) \.\.\. FAILED$/not ok - host: \1/p' \
		"$log/cargo.log" | tee -a "$results"
	if [ "$status" -ne 0 ]; then
		sed 's/^/# /' "$log/cargo.log" | tail -n 60
		grep -q FAILED "$log/cargo.log" || echo "not ok - host: cargo test" | tee -a "$results"
	fi
}

# refuses_kernel_without MESSAGE LINE…: fails unless make refuses, with MESSAGE, a kernel that is
# configured as LINEs say.
refuses_kernel_without() {
	local message=$1 kdir=$project/build/run/kdir
	shift
	mkdir -p "$kdir/include/config"
	printf '%s\n' "$@" >"$kdir/include/config/auto.conf"
	if in_rootfs make "KDIR=/project/build/run/kdir" modules 2>&1 | tee "$log/refused.log"; then
		return 1
	fi
	grep -q "$message" "$log/refused.log"
}

part_quick() {
	mapfile -t sources < <(find "$project/src" -name '*.rs' | sed "s,^$project/,,")
	mapfile -t shells < <(cd "$project" && ls scripts/*.sh .ci/run)
	check "sources are formatted" in_rootfs rustfmt --check --edition 2021 "${sources[@]}"
	check "shell scripts are clean" in_rootfs shellcheck -x "${shells[@]}"
	check "host code is clean to clippy" in_rootfs cargo clippy --quiet --workspace --all-targets -- -D warnings
	check "a kernel without CONFIG_RUST is refused" refuses_kernel_without "without CONFIG_RUST" \
		CONFIG_NET_SCHED=y
	check "a kernel without Rust metadata is refused" refuses_kernel_without "rust/libkernel.rmeta" \
		CONFIG_RUST=y
	cargo_test --quiet --no-fail-fast -- --format=pretty
}

# no_panics OBJECT: fails if OBJECT refers to anything in core::panicking.
no_panics() {
	local symbols
	symbols=$(in_rootfs nm "$1") || return 1
	if printf '%s\n' "$symbols" | grep core9panicking; then
		return 1
	fi
	printf '%s\n' "$symbols" | grep register_qdisc
}

part_build() {
	check "module builds for User Mode Linux" "$project/scripts/build.sh" uml
	check "module builds for the stock kernel" "$project/scripts/build.sh" stock
	check "plugin for tc builds" "$project/scripts/build.sh" tc
	check "stock object refers to no panic" no_panics build/stock/sch_cake.o
	check "kernel code is clean to clippy" "$project/scripts/build.sh" clippy
}

uml=("$project/scripts/uml.sh" --timeout 3600)

# What the tests in machines need.
need_builds() {
	[ -e "$project/build/uml/sch_cake.ko" ] || "$project/scripts/build.sh" uml
	[ -e "$project/build/tc/q_cake.so" ] || "$project/scripts/build.sh" tc
}

# shellcheck disable=SC2086 # $length may be nothing
part_uml() {
	need_builds
	ktap basic "${uml[@]}" python3 tests/selftests/basic.py
	ktap show "${uml[@]}" python3 tests/selftests/show.py
	ktap classes "${uml[@]}" --time-travel python3 tests/selftests/classes.py
	ktap packets "${uml[@]}" --time-travel python3 tests/selftests/packets.py
	ktap filters "${uml[@]}" --time-travel python3 tests/selftests/filters.py
	ktap parents "${uml[@]}" --time-travel python3 tests/selftests/parents.py
	ktap multiqueue "${uml[@]}" --time-travel python3 tests/selftests/multiqueue.py
	ktap clients "${uml[@]}" --time-travel python3 tests/selftests/clients.py
	ktap tins "${uml[@]}" --time-travel python3 tests/selftests/tins.py
	ktap manual "${uml[@]}" python3 tests/selftests/manual.py
	ktap plugin "${uml[@]}" --time-travel python3 tests/selftests/plugin.py $length
	ktap stress "${uml[@]}" python3 tests/selftests/stress.py $length
	ktap seed "${uml[@]}" --time-travel python3 tests/selftests/seed.py $length
	ktap shaper "${uml[@]}" --time-travel python3 tests/selftests/shaper.py $length
	ktap isolation "${uml[@]}" --time-travel python3 tests/selftests/isolation.py $length
	ktap aqm "${uml[@]}" --time-travel python3 tests/selftests/aqm.py $length
}

# shellcheck disable=SC2086 # $length may be nothing
part_differential() {
	need_builds
	ktap differential "${uml[@]}" --time-travel python3 tests/selftests/differential.py $length
}

# shellcheck disable=SC2086 # $length may be nothing
part_experiments() {
	check "experiments are played and drawn" "$project/scripts/experiments.sh" $length seed greedy hosting
	ktap experiments in_rootfs python3 tests/experiments/verdict.py
}

part_tdc() {
	need_builds
	ktap tdc "${uml[@]}" python3 tests/selftests/tdc.py
}

part_stock() {
	[ -e "$project/build/stock/sch_cake.ko" ] || "$project/scripts/build.sh" stock
	ktap demo "$project/scripts/demo.sh" --assert
	ktap stock-tdc "$project/scripts/vm.sh" python3 tests/selftests/tdc.py cake
}

length=--short
if [ "${1-}" = --full ]; then
	length=
	shift
fi
need_setup
[ $# -gt 0 ] || set -- quick build uml differential experiments tdc stock
for part in "$@"; do
	declare -F "part_$part" >/dev/null || die "no part named $part; see --help"
	started=$SECONDS
	"part_$part"
	echo "# $part took $((SECONDS - started)) s"
done

passed=$(grep -c '^ok ' "$results" || true)
failed=$(grep -c '^not ok ' "$results" || true)
[ "$failed" -eq 0 ] || grep '^not ok ' "$results" | sed 's/^/# /'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
