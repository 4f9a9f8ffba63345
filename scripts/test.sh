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
  proof  short runs of make proof: simulator, fuzzers, a kernel that looks for errors, several
         CPUs, static checks, planted defects
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

# at_once CMD…: runs it beside others, as many as there are CPUs; its output comes whole.
at_once() {
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
	(
		output=$(mktemp "$log/at_once.XXXXXX")
		"$@" >"$output" 2>&1
		flock "$log" cat "$output"
		rm "$output"
	) &
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
	cargo_test --quiet --workspace --no-fail-fast -- --format=pretty
}

part_build() {
	check "module builds for User Mode Linux" "$project/scripts/build.sh" uml
	check "module builds for the stock kernel" "$project/scripts/build.sh" stock
	check "plugin for tc builds" "$project/scripts/build.sh" tc
	check "stock object refers to no panic, and its stack is small" in_rootfs \
		python3 tests/static/object.py build/stock/sch_cake.o
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
	at_once ktap basic "${uml[@]}" python3 tests/selftests/basic.py
	at_once ktap kunit "${uml[@]}" python3 tests/selftests/kunit.py
	at_once ktap show "${uml[@]}" python3 tests/selftests/show.py
	at_once ktap manual "${uml[@]}" python3 tests/selftests/manual.py
	at_once ktap stress "${uml[@]}" python3 tests/selftests/stress.py $length
	for name in classes packets filters parents multiqueue clients tins; do
		at_once ktap "$name" "${uml[@]}" --time-travel python3 "tests/selftests/$name.py"
	done
	for name in plugin seed shaper isolation aqm; do
		at_once ktap "$name" "${uml[@]}" --time-travel python3 "tests/selftests/$name.py" $length
	done
	wait
}

part_proof() {
	ktap proof "$project/scripts/proof.sh" --short --again
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
[ $# -gt 0 ] || set -- quick build uml differential experiments tdc proof stock
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
