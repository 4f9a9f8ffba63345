#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The manual page of the plugin: it renders, its examples work, its table is true."""

import json
import re
import shlex

from lab import HERE, main, module, namespaces, run, test, with_plugin

PAGE = HERE.parents[1] / "src/tc/tc-cake-tins.8"


def plain(text):
    """A line of the page's source without its markup."""
    return re.sub(r"\\f[BRIP]", "", text).replace(r"\-", "-").replace(r"\e", "\\")


def examples():
    """The commands of the examples."""
    blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    text = plain("".join(blocks)).replace("\\\n", " ")
    return [shlex.split(command) for command in text.splitlines()]


def table():
    """The rows of the table of presets by mode: tin, share, target and interval.

    What else is in it, the kernel does not tell; tests/tins.rs looks at that.
    """
    rows, mode = {}, None
    source = PAGE.read_text(encoding="utf-8").split(".SH PRESETS")[1].split(".TE")[0]
    for words in (plain(line).split("\t") for line in source.splitlines()):
        if len(words) == 1 and words[0].isalnum():
            mode = rows.setdefault(words[0], [])
        elif mode is not None and len(words) == 6:
            mode.append((words[0], *words[2:5]))
    return rows


@test
def page_renders_without_a_warning():
    complaints = run("mandoc", "-Tlint", "-W", "style", str(PAGE), check=False)
    complaints += run("groff", "-t", "-man", "-ww", "-z", str(PAGE))
    assert not complaints, complaints


@test
def every_example_works():
    commands = examples()
    assert sum(words[0] == "tc" for words in commands) >= 5, commands
    with module("rust"), namespaces("box") as [box]:
        box.run("ip link add eth0 type dummy")
        for words in commands:
            if "replace" in words:
                # Each stands for itself.
                box.run("tc qdisc del dev eth0 root", check=False)
            box.run(*words, env=with_plugin())
            if words[0] == "tc" and "default" not in words:
                shown = box.run("tc qdisc show dev eth0", env=with_plugin())
                assert " ".join(words[words.index("tin"):]) in shown.lower(), shown


@test
def table_of_presets_is_what_the_kernel_says():
    time_of = lambda us: f"{us / 1000:.3g}ms"
    with module("rust"), namespaces("box") as [box]:
        box.run("ip link add eth0 type dummy")
        rows = table()
        assert len(rows) == 5, rows
        for mode, expected in rows.items():
            box.run(f"tc qdisc replace dev eth0 root cake bandwidth 2mbit {mode}")
            tins = json.loads(box.run("tc -s -j qdisc show dev eth0"))[0]["tins"]
            assert len(tins) == len(expected), mode
            for tin, (name, share, target, interval) in zip(tins, expected):
                found = tin["threshold_rate"] / 2500
                assert abs(found - float(share.rstrip("%"))) < 0.06, (mode, name, found)
                assert time_of(tin["target_us"]) == target, (mode, name, tin["target_us"])
                assert time_of(tin["interval_us"]) == interval, (mode, name, tin["interval_us"])
                box.run("tc", *f"qdisc change dev eth0 root cake tin {name} burst 0".split(),
                        env=with_plugin())


if __name__ == "__main__":
    main()
