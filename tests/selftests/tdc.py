#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests in the form of upstream's tc-testing: its own of the qdiscs, and ours of single tins.

One that is skipped has failed.

TC_TESTING names the kernel's tools/testing/selftests/tc-testing.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from lab import HERE, TCS, kernel_log, module, with_plugin

# For each suite its cases and a tc that knows the words. cake_mq's cases need netdevsim.
SUITES = {
    "cake": ("tc-tests/qdiscs/cake.json", TCS[0]),
    "cake_mq": ("tc-tests/qdiscs/cake_mq.json", TCS[1]),
    "tins": (f"{HERE.parent}/tdc/tins.json", TCS[0]),
}
DIRECTORY = os.environ.get("TC_TESTING", "/kernel/source/tools/testing/selftests/tc-testing")
RESULT = re.compile(r"(not )?ok (\d+) (.*)")


def plugged(tc):
    """A program that runs tc with the plugin: tdc hands no environment on."""
    program = pathlib.Path("/tmp/tc")
    program.write_text(f'#!/bin/sh\nTC_LIB_DIR={with_plugin()["TC_LIB_DIR"]} exec {tc} "$@"\n',
                       encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def run(name):
    """The results of a suite: whether each is well, and its name."""
    cases, tc = SUITES[name]
    if name == "tins":
        tc = plugged(tc)
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
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="default: all")
    suites = parser.parse_args().suites or list(SUITES)
    print("KTAP version 1")
    results = []
    with module("rust"):
        for name in suites:
            if name == "cake_mq":
                subprocess.run(["modprobe", "netdevsim"], check=True)
            results += run(name)
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
