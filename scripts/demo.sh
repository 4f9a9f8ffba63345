#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Shows what the module does, on the distribution's own kernel.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/demo.sh [--assert]
Builds the module for the distribution's kernel, boots that kernel and plays the line that this
project was born from: three games and an upload share 2 Mbit/s. Exit status 1 and a line that says
what was off if a figure is implausible. With --assert: shorter, and as a test in KTAP." "$@"

need_setup
[ -n "${1-}" ] || echo "Building the module for the kernel $(cat "$cache/version") …"
"$project/scripts/build.sh" stock >&2
[ -n "${1-}" ] || echo "Booting that kernel …"
exec "$project/scripts/vm.sh" --timeout 300 python3 tests/selftests/demo.py "$@"
