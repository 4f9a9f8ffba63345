#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a packet costs in each mode: no qdisc, the C module and ours in turn, round after round.

Prints a row of JSON for each mode.
"""

import argparse
import json
import statistics

from lines import cost, prepare, ratio
from lab import MODULES, module

CAKE = "root handle 1: cake"
MODES = {
    "flowblind": f"{CAKE} besteffort flowblind",
    "flows": f"{CAKE} besteffort flows",
    "dual-srchost": f"{CAKE} besteffort dual-srchost",
    "dual-dsthost": f"{CAKE} besteffort dual-dsthost",
    "diffserv4 triple-isolate": f"{CAKE} diffserv4 triple-isolate",
    "triple-isolate nat": f"{CAKE} diffserv4 triple-isolate nat",
    "flows 40gbit": f"{CAKE} besteffort flows bandwidth 40gbit",
    "dual-srchost 40gbit": f"{CAKE} besteffort dual-srchost bandwidth 40gbit",
    "dual-dsthost 40gbit": f"{CAKE} besteffort dual-dsthost bandwidth 40gbit",
    "diffserv4 triple-isolate 40gbit": f"{CAKE} diffserv4 triple-isolate bandwidth 40gbit",
}


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--where", choices=["uml", "stock"], required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("modes", nargs="*")
    arguments = parser.parse_args()
    prepare()
    modes = {name: qdisc for name, qdisc in MODES.items()
             if not arguments.modes or name in arguments.modes}
    seen = {name: {"base": [], "c": [], "rust": []} for name in modes}
    for _ in range(arguments.rounds):
        for which in MODULES:
            with module(which):
                for name, qdisc in modes.items():
                    seen[name][which].append(cost(qdisc, arguments.count))
        base = cost(None, arguments.count)
        for row in seen.values():
            row["base"].append(base)
    for name, row in seen.items():
        medians = {key: round(statistics.median(values), 1) for key, values in row.items()}
        spread = {key: round(max(values) - min(values), 1) for key, values in row.items()}
        print(json.dumps({
            "where": arguments.where, "unit": "ns" if arguments.where == "uml" else "instructions",
            "mode": name, **medians, "ratio": round(ratio(row["base"], row["c"], row["rust"]), 3),
            "spread": spread}), flush=True)


if __name__ == "__main__":
    main()
