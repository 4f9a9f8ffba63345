#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs everything that could show the module wrong.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/proof.sh [--short] [--again] [NAME…]
Runs the simulator, property tests, fuzzers, the selftests on a kernel that looks for errors, requests
and packets that are wrong, failing allocations, several CPUs, static checks and planted defects; as
many at once as there are CPUs. Some two hours; --short: some minutes, with shorter runs and fewer of
them. Prints a KTAP line for each as it ends, then a table, and writes build/proof/proof.json. Exit
status 1 if anything was found.
What found nothing is not run again while the sources are the same, unless --again says so; NAME
runs only those whose name holds one of the words." "$@"

short='' again=''
while [ $# -gt 0 ]; do
	case $1 in
	--short) short=--short && shift ;;
	--again) again=1 && shift ;;
	-*) die "unknown option $1; see --help" ;;
	*) break ;;
	esac
done
words=$*

need_debug
for flavour in uml debug stock tc asan; do
	"$project/scripts/build.sh" "$flavour" 2>/dev/null || die "scripts/build.sh $flavour fails"
done
out=$project/build/proof
mkdir -p "$out"
# What the results are results of.
state=$(cd "$project" && find src include tests Cargo.* Kbuild -type f -print0 |
	sort -z | xargs -0 cksum | cksum)

# The rows: part, name, and what in its output tells how much was done (a sed expression).
names=()
declare -A part amount command

# row PART NAME AMOUNT CMD…
row() {
	local name=$2
	[ -z "$words" ] || { local word match= && for word in $words; do case $name in *"$word"*) match=1 ;; esac; done && [ -n "$match" ]; } || return 0
	names+=("$name")
	part[$name]=$1
	amount[$name]=$3
	shift 3
	command[$name]=$(printf '%q ' "$@")
}

# debug NAME AMOUNT CMD…: a row on the kernel that looks for errors.
debug() {
	local name=$1 how_much=$2
	shift 2
	row debug "$name" "$how_much" "$project/scripts/uml.sh" --debug --timeout 5400 "$@"
}

planned='s/^1\.\.\([0-9]*\)$/\1 tests/p'
tests='s/^test result: ok\. \([0-9]*\) passed.*/\1 tests/p'
seeds=10 cases=10000 fuzz=600 mutants=()
[ -z "$short" ] || { seeds=1 cases=256 fuzz=5 mutants=(--some 2); }

# shellcheck disable=SC2016 # sed's own
row simulator simulator '/simulated: /h; ${x; s/.*simulated: //p}' "$project/scripts/enter.sh" env SIMULATOR_SEEDS="$seeds" \
	cargo test --quiet --test simulator -- --nocapture
row properties properties "$tests" "$project/scripts/enter.sh" env PROPTEST_CASES="$cases" \
	cargo test --test properties --test fairness --test tins --test acks
for target in headers acks requests operations; do
	row fuzzers "fuzz $target" 's/^.*: \([0-9]* executions\).*/\1/p' "$project/scripts/fuzz.sh" \
		--seconds "$fuzz" "$target"
done
# shellcheck disable=SC2086 # $short may be nothing
{
	debug "KUnit" "$planned" python3 tests/selftests/kunit.py
	debug "requests" 's/^# \([0-9]* requests, [0-9]* refused\).*/\1/p' \
		python3 tests/selftests/netlink_stress.py $short
	debug "malformed packets" 's/^# \([0-9]* made.*\)/\1/p' python3 tests/selftests/packet_stress.py $short
	debug "failing allocations" 's/^# \(.*: [0-9]* allocations\)$/\1/p' python3 tests/selftests/faults.py $short
	debug "churn" 's/^# \([0-9]* namespaces.*\)/\1/p' python3 tests/selftests/churn.py $short
	if [ -z "$short" ]; then
		debug "tdc" "$planned" python3 tests/selftests/tdc.py
		for name in basic show manual; do
			debug "$name" "$planned" python3 "tests/selftests/$name.py" --short
		done
		# Traffic would leave this kernel no time for changes if time did not wait for it.
		for name in stress classes packets filters parents multiqueue clients tins plugin seed shaper aqm isolation differential; do
			debug "$name" "$planned" --time-travel python3 "tests/selftests/$name.py" --short
		done
	fi
	row smp "2 CPUs" 's/^# \(.* packets from [0-9]* CPUs, [0-9]* changes and dumps\).*/\1/p' \
		"$project/scripts/vm.sh" --timeout 1200 --cpus 2 python3 tests/selftests/smp.py $short
	[ -n "$short" ] || row smp "4 CPUs" 's/^# \(.* packets from [0-9]* CPUs, [0-9]* changes and dumps\).*/\1/p' \
		"$project/scripts/vm.sh" --timeout 2400 --cpus 4 python3 tests/selftests/smp.py $short
	row static "panics and stack" 's/\(.* of stack\).*/\1/p; s/^\([0-9]* functions.*\)/\1/p' \
		"$project/scripts/enter.sh" python3 tests/static/object.py build/stock/sch_cake.o
	row static "unsafe code" 's/\(.*unsafe.*\)/\1/p' "$project/scripts/enter.sh" \
		python3 tests/static/unsafe_code.py
	row static "licences and advisories" 's/^\([0-9]* crates.*\)/\1/p' "$project/scripts/enter.sh" \
		env ADVISORIES="${ADVISORIES-}" python3 tests/static/dependencies.py
	row static "plugin in valgrind and AddressSanitizer" 's/^# \([0-9]* commands.*\)/\1/p' \
		"$project/scripts/uml.sh" --timeout 3600 python3 tests/selftests/plugin_memory.py $short
	row mutants "planted defects" 's/^\([0-9]* of [0-9]* caught\)/\1/p' "$project/scripts/enter.sh" \
		python3 tests/mutants/mutants.py "${mutants[@]}"
}

# run NAME: runs a row and leaves its result in a file.
run() {
	local name=$1 file=$out/${1// /-} started=$SECONDS status=0 found=0
	# A guest's console ends lines as a terminal wants them.
	eval "${command[$name]}" 2>&1 </dev/null | tr -d '\r' >"$file.log" || status=$?
	found=$(grep -cE '^not ok |SURVIVES|: broken;|^test .* FAILED' "$file.log" || true)
	[ "$status" -eq 0 ] || [ "$found" -gt 0 ] || found=1
	# shellcheck disable=SC2016 # jq's own
	in_rootfs jq -n --arg part "${part[$name]}" --arg name "$name" --argjson seconds $((SECONDS - started)) \
		--arg amount "$(sed -n "${amount[$name]}" "$file.log" | paste -sd ';' | sed 's/; */; /g')" \
		--argjson found "$found" --arg state "$state$short" \
		'{$part, $name, $amount, $seconds, $found, $state}' >"$file.json"
}

# is_done NAME: whether it was run on these sources and found nothing.
is_done() {
	# shellcheck disable=SC2016 # jq's own
	[ -z "$again" ] && [ -e "$out/${1// /-}.json" ] &&
		in_rootfs jq -e --arg state "$state$short" '.found == 0 and .state == $state' \
			<"$out/${1// /-}.json" >/dev/null
}

# tell NAME: its result, as KTAP has it.
tell() {
	local file=$out/${1// /-} number=$2 verdict=ok
	in_rootfs jq -e '.found == 0' <"$file.json" >/dev/null || {
		verdict="not ok"
		tail -n 30 "$file.log" | sed 's/^/# /'
	}
	printf '%s %d %s\n' "$verdict" "$number" "$1"
}

[ ${#names[@]} -gt 0 ] || die "no row's name holds any of: $words"
printf 'KTAP version 1\n1..%d\n' ${#names[@]}
number=0
for name in "${names[@]}"; do
	number=$((number + 1))
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
	(
		if is_done "$name"; then
			printf '# %s: found nothing before, on the same sources\n' "$name"
		else
			[ -n "$short" ] || printf '# %s: begun at %s\n' "$name" "$(date +%T)"
			run "$name"
		fi
		tell "$name" "$number"
	) &
done
wait

files=()
for name in "${names[@]}"; do files+=("build/proof/${name// /-}.json"); done
in_rootfs jq -s 'map(del(.state))' "${files[@]}" >"$out/proof.json"
in_rootfs jq -r '.[] | [.part, .name, (.seconds | tostring) + " s", (if .found == 0 then "nothing" else
	(.found | tostring) + " findings" end), (.amount | if length > 90 then .[:88] + "…" else . end)] | @tsv' <"$out/proof.json" |
	column -t -s "$(printf '\t')" -N 'part,what,time,found,how much' | sed 's/^/# /'
in_rootfs jq -e 'all(.found == 0)' <"$out/proof.json" >/dev/null
