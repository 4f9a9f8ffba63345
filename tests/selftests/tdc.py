#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Upstream's own tests of the qdiscs, from tc-testing; one that is skipped has failed.

TC_TESTING names the kernel's tools/testing/selftests/tc-testing.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from lab import kernel_log, module

# For each discipline a tc that knows it. cake_mq's cases need netdevsim.
SUITES = {"cake": "/usr/sbin/tc", "cake_mq": "/opt/iproute2/usr/sbin/tc"}
DIRECTORY = os.environ.get("TC_TESTING", "/kernel/source/tools/testing/selftests/tc-testing")
RESULT = re.compile(r"(not )?ok (\d+) (.*)")


def run(name, tc):
    """The results of a suite: whether each is well, and its name."""
    cases = f"tc-tests/qdiscs/{name}.json"
    expected = len(json.loads(pathlib.Path(DIRECTORY, cases).read_text(encoding="utf-8")))
    command = ["python3", "tdc.py", "-n", "--outfile", "/tmp/tdc.tap", "-f", cases, "-p", tc]
    done = subprocess.run(command, cwd=DIRECTORY, capture_output=True, text=True, check=False)
    found = [RESULT.match(line) for line in done.stdout.splitlines()]
    results = [(not match[1] and "skip" not in match[3].lower(), f"{name} {match[3]}")
               for match in found if match]
    results.append((len(results) == expected and done.returncode == 0, f"{name}: all of them ran"))
    if not all(well for well, _ in results):
        for line in (done.stdout + done.stderr).splitlines():
            print(f"# {line}")
    return results


def main():
    """Runs tdc and passes its results on."""
    if not os.path.exists(f"{DIRECTORY}/tdc.py"):
        sys.exit(f"there is no tdc.py in {DIRECTORY}: set TC_TESTING")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="default: both")
    suites = parser.parse_args().suites or list(SUITES)
    print("KTAP version 1")
    results = []
    with module("rust"):
        for name in suites:
            if name == "cake_mq":
                subprocess.run(["modprobe", "netdevsim"], check=True)
            results += run(name, SUITES[name])
        if "cake_mq" in suites:
            subprocess.run(["rmmod", "netdevsim"], check=True)
    log = kernel_log()
    results.append((not log, "kernel log is clean"))
    for line in log:
        print(f"# {line}")
    print(f"1..{len(results)}")
    for number, (well, name) in enumerate(results, 1):
        print(f"{'' if well else 'not '}ok {number} {name.replace('#', '-')}")
    sys.exit(0 if all(well for well, _ in results) else 1)


if __name__ == "__main__":
    main()
