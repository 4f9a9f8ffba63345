#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The module's KUnit tests, which run when it is loaded."""

import pathlib
import re
import sys

from lab import kernel_log, module

RESULTS = pathlib.Path("/sys/kernel/debug/kunit")
SUITES = ("cake_net", "cake_qdisc")


def main():
    """Loads the module and passes the results on."""
    if not RESULTS.exists():
        sys.exit("this kernel has no KUnit: build it with CONFIG_KUNIT and CONFIG_KUNIT_DEBUGFS")
    results = []
    with module("rust"):
        for suite in SUITES:
            text = (RESULTS / suite / "results").read_text(encoding="ascii")
            results += [(not match[1], f"{suite} {match[2]}") for match in
                        re.finditer(r"^ +(not )?ok \d+ (\w+)$", text, re.M)]
            if "not ok" in text:
                print("\n".join(f"# {line}" for line in text.splitlines()))
    log = kernel_log()
    results.append((not log, "kernel log is clean"))
    print(f"KTAP version 1\n1..{len(results)}")
    for number, (well, name) in enumerate(results, 1):
        print(f"{'' if well else 'not '}ok {number} {name}")
    sys.exit(0 if len(results) > 10 and all(well for well, _ in results) else 1)


if __name__ == "__main__":
    main()
