#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Upstream's own tests of the qdisc, cake.json of tc-testing; one that is skipped has failed.

TC_TESTING names the kernel's tools/testing/selftests/tc-testing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from lab import kernel_log, module

CASES = "tc-tests/qdiscs/cake.json"
DIRECTORY = os.environ.get("TC_TESTING", "/kernel/source/tools/testing/selftests/tc-testing")
RESULT = re.compile(r"(not )?ok (\d+) (.*)")


def main():
    """Runs tdc and passes its results on."""
    if not os.path.exists(f"{DIRECTORY}/tdc.py"):
        sys.exit(f"there is no tdc.py in {DIRECTORY}: set TC_TESTING")
    expected = len(json.loads(pathlib.Path(DIRECTORY, CASES).read_text(encoding="utf-8")))
    print("KTAP version 1")
    with module("rust"):
        command = ["python3", "tdc.py", "-n", "-f", CASES, "-p", "/usr/sbin/tc"]
        done = subprocess.run(command, cwd=DIRECTORY, capture_output=True, text=True, check=False)
    results = [RESULT.match(line) for line in done.stdout.splitlines()]
    results = [result for result in results if result]
    print(f"1..{len(results) + 1}")
    failed = 0
    for result in results:
        bad = bool(result[1]) or "skip" in result[3].lower()
        failed += bad
        print(f"{'not ' if bad else ''}ok {result[2]} {result[3].replace('#', '-')}")
    clean = not kernel_log() and done.returncode == 0 and len(results) == expected
    print(f"{'' if clean else 'not '}ok {len(results) + 1} all of them ran and the log is clean")
    if failed or not clean:
        for line in (done.stdout + done.stderr).splitlines() + kernel_log():
            print(f"# {line}")
        sys.exit(1)


if __name__ == "__main__":
    main()
