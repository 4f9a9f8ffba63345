#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the module's object shows: that nothing in it can panic, and how deep its stack gets.

From the machine code: a function's frame is what it pushes and what it takes off the stack pointer;
calls of the module's own functions are followed.
"""

import argparse
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(?!__pfx)(.+)>:$")
FRAME = re.compile(r"\t(push|sub)\s+(?:\$0x([0-9a-f]+),%rsp|%\w+)$")
REFERENCE = re.compile(r"R_X86_64_(?:PLT32|PC32)\t(\w+)(?:-0x4)?$")
BRANCH = re.compile(r"\t(?:call|jmp)\s+[0-9a-f]+ <(\w+)>")
# Where the kernel enters on the packet path.
ENTRIES = re.compile(r"7adapter.*4cake4Cake.*E7(enqueue|dequeue)B")


def functions(path):
    """Each function's frame in bytes and the names that it refers to."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            name = match[1]
            # The return address.
            found[name] = [8, set()]
        elif name and (match := FRAME.search(line)):
            found[name][0] += int(match[2], 16) if match[2] else 8
        elif name and (match := REFERENCE.search(line) or BRANCH.search(line)):
            found[name][1].add(match[1])
    return found


def deepest(found, name, above=()):
    """The most bytes that `name` and what it calls take, and by which way."""
    frame, callees = found[name]
    depth, way = 0, ()
    for callee in callees - {name, *above}:
        if callee in found:
            depth, way = max((depth, way), deepest(found, callee, (*above, name)))
    return frame + depth, (name, *way)


def main():
    """Checks an object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("object")
    parser.add_argument("--most", type=int, default=1024, help="bytes of stack on the packet path")
    arguments = parser.parse_args()
    symbols = subprocess.run(["nm", arguments.object], capture_output=True, text=True,
                             check=True).stdout
    if "register_qdisc" not in symbols:
        sys.exit(f"{arguments.object} is not the module")
    panics = re.findall(r"\S*core9panicking\S*", symbols)
    found = functions(arguments.object)
    entries = [name for name in found if ENTRIES.search(name)]
    if len(entries) != 2:
        sys.exit(f"{arguments.object}: the packet path has {len(entries)} entries, not 2")
    worst = 0
    for entry in entries:
        depth, way = deepest(found, entry)
        worst = max(worst, depth)
        print(f"{ENTRIES.search(entry)[1]}: {depth} bytes of stack, in {len(way)} functions")
    print(f"{len(found)} functions, {len(panics)} references to panics")
    sys.exit(1 if panics or worst > arguments.most else 0)


if __name__ == "__main__":
    main()
