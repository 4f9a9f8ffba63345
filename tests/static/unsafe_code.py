#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Where there is unsafe code, how much, and whether each piece says why it is sound."""

import pathlib
import re
import sys

ALLOWED = ("src/net/", "src/tc/")
BLOCK = re.compile(r"\bunsafe\b(?! (fn|extern)| ?_|\()")
FUNCTION = re.compile(r"\bunsafe (extern \"C\" )?fn\b|\bunsafe extern\b")


def is_explained(lines, number):
    """Whether a SAFETY comment stands right above a line, or above the statement that it is in."""
    for above in range(number - 1, max(number - 12, -1), -1):
        text = lines[above].strip()
        if text.startswith("// SAFETY:"):
            return True
        if text.endswith((";", "}")) and not text.startswith("//"):
            return False
    return False


def main():
    """Looks through all sources."""
    counts, troubles = {}, []
    for path in sorted(pathlib.Path("src").rglob("*.rs")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            code = line.split("//")[0]
            if "unsafe" not in code or "unsafe_" in code or "(unsafe" in code:
                continue
            if not str(path).startswith(ALLOWED):
                troubles.append(f"{path}:{number + 1}: unsafe outside of {' and '.join(ALLOWED)}")
            folder = "/".join(path.parts[:2])
            blocks, functions = counts.setdefault(folder, [0, 0])
            if FUNCTION.search(code):
                counts[folder] = [blocks, functions + 1]
            elif BLOCK.search(code):
                counts[folder] = [blocks + 1, functions]
                if not is_explained(lines, number) and "SAFETY" not in line:
                    troubles.append(f"{path}:{number + 1}: no SAFETY comment")
    for row in troubles:
        print(row)
    print("; ".join(f"{folder}: {blocks} unsafe blocks, {functions} unsafe functions"
                    for folder, (blocks, functions) in counts.items()))
    sys.exit(1 if troubles or not counts else 0)


if __name__ == "__main__":
    main()
