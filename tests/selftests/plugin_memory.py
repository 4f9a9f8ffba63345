#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The plugin for tc under valgrind and, where it was built for it, under AddressSanitizer.

scripts/build.sh asan builds it so.
"""

import os
import pathlib
import random

from lab import HERE, PLUGIN, TCS, Skip, main, module, note, short, test
from plugin import ODD, random_words
from show import CHANGES, KEYWORDS, TIN_MODES, box_with_dummy

ASAN = HERE.parents[1] / "build/asan"
RUNTIME = "libclang_rt.asan-x86_64.so"
# What is refused, in one way or another.
WRONG = ["tin", "tin voice", "tin nobody thresh 1mbit", "tin voice thresh", "tin voice thresh 101%",
         "tin voice thresh 1", "tin voice dscp 64", "tin voice dscp ef,,ef", "tin voice burst 2mb",
         "tin voice target 10ms interval 5ms", "ackfilter", "bandwidth", "bandwidth 1mbitt",
         "overhead 999999", "tin voice dscp " + "ef," * 200, "x" * 300, "tin " + "v" * 300]


def batch(path):
    """Writes commands of all kinds to a file; returns how many."""
    generator = random.Random(1)
    wordings = ODD + KEYWORDS + TIN_MODES + CHANGES + WRONG
    wordings += [random_words(generator) for _ in range(20 if short() else 500)]
    lines = ["qdisc add dev d0 root handle 1: cake"]
    for words in wordings:
        lines += [f"qdisc change dev d0 root cake {words}", f"qdisc replace dev d0 root cake {words}",
                  "qdisc show dev d0", "-s qdisc show dev d0", "class show dev d0"]
    lines += ["qdisc replace dev d0 root cake_mq bandwidth 1mbit tin voice thresh 50%",
              "qdisc show dev d0"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def examine(wrapper, environment, complaint):
    """Runs the commands with each tc, in text and JSON; nothing may complain."""
    path = pathlib.Path("/tmp/batch")
    with module("rust"):
        for tc in TCS:
            for options in ([], ["-s", "-j"], ["-s", "-o"]):
                with box_with_dummy() as box:
                    count = batch(path)
                    process = box.start(*wrapper, tc, *options, "-force", "-batch", str(path),
                                        env={**os.environ, **environment})
                    output, errors = process.communicate()
                    assert complaint not in errors, errors[-4000:]
                    assert process.returncode in (0, 1, 2), f"{process.returncode}: {errors[-2000:]}"
                    assert len(output) > 20 * count, (len(output), errors[-2000:])
        note(f"{count} commands to each of {len(TCS)} tc, in 3 forms")


@test
def valgrind_finds_nothing():
    examine(["valgrind", "-q", "--error-exitcode=99"], {"TC_LIB_DIR": PLUGIN}, "==")


@test
def address_sanitizer_finds_nothing():
    if not (ASAN / "q_cake.so").exists():
        raise Skip("scripts/build.sh asan was not run")
    runtime = next(pathlib.Path("/usr/lib").glob(f"llvm-*/lib/clang/*/lib/linux/{RUNTIME}"))
    environment = {"TC_LIB_DIR": str(ASAN), "LD_PRELOAD": str(runtime),
                   # tc itself frees little.
                   "ASAN_OPTIONS": "detect_leaks=0"}
    examine([], environment, "AddressSanitizer")


if __name__ == "__main__":
    main()
