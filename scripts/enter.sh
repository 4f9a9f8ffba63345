#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Runs a command in the tree in which everything is built and tested.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/enter.sh CMD…
Runs CMD as root in the rootfs, in /project; kernels are under /kernel. Without CMD: a shell." "$@"

need_setup
[ $# -gt 0 ] || set -- bash
in_rootfs "$@"
