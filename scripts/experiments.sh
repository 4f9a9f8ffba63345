#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs the experiments and draws what comes of them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/experiments.sh [--short] [NAME…]
Plays the experiments in User Mode Linux with time travel, both modules in each, and writes
build/experiments/NAME.json, .svg and .png. Without NAME: all of them, some five minutes." "$@"

need_setup
"$project/scripts/build.sh" uml
"$project/scripts/build.sh" tc
"$project/scripts/uml.sh" --timeout 3600 --time-travel python3 tests/experiments/experiments.py "$@"
in_rootfs python3 tests/experiments/pictures.py
