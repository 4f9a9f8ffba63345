#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the crates in Cargo.lock are licensed for, where they come from, and what is known of them.

ADVISORIES names a checkout of the RustSec advisory database, if there is one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

# What may be linked with GPL-2.0 code, or is only built with.
ALLOWED = {"MIT", "BSD-2-Clause", "NCSA", "Unicode-3.0", "GPL-2.0"}


def is_allowed(expression):
    """Whether an SPDX expression leaves a choice that is allowed."""
    text = re.sub(r"[\w.-]+( WITH [\w.-]+)?",
                  lambda match: match[0].lower() if match[0] in ("AND", "OR")
                  else str(match[0] in ALLOWED), expression)
    return re.fullmatch(r"(True|False|and|or|[() ])+", text) is not None and eval(text)  # pylint: disable=eval-used


def version(text):
    """A version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0].split("-")[0])[:3])


def is_within(number, requirement):
    """Whether a version meets requirements like '>= 1.2.3, < 2' or '^1.2'."""
    for part in requirement.split(","):
        operator, bound = re.fullmatch(r"\s*([<>=^~]*)\s*(\S+)\s*", part).groups()
        bound = (version(bound) + (0, 0, 0))[:3]
        upper = (bound[0] + 1, 0, 0) if bound[0] else (0, bound[1] + 1, 0)
        if operator == "~":
            upper = (bound[0], bound[1] + 1, 0)
        if not {"<": number < bound, "<=": number <= bound, ">": number > bound,
                ">=": number >= bound, "=": number == bound}.get(operator, bound <= number < upper):
            return False
    return True


def advisories(folder, name, number):
    """The advisories that hold for a crate in a version."""
    for path in pathlib.Path(folder, "crates", name).glob("*.md"):
        text = path.read_text(encoding="utf-8").split("```toml", 1)[1].split("```", 1)[0]
        data = tomllib.loads(text)
        kept = data.get("versions", {})
        spared = kept.get("patched", []) + kept.get("unaffected", [])
        if "withdrawn" in data["advisory"] or any(is_within(number, one) for one in spared):
            continue
        yield data["advisory"]


def main():
    """Checks every crate."""
    text = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"], check=True,
                          capture_output=True, text=True).stdout
    crates = json.loads(text)["packages"]
    folder = os.environ.get("ADVISORIES")
    troubles, notices = [], []
    for crate in crates:
        label = f"{crate['name']} {crate['version']}"
        if not is_allowed(crate["license"] or ""):
            troubles.append(f"{label}: licence {crate['license']}")
        if crate["source"] and not crate["source"].startswith("registry+"):
            troubles.append(f"{label}: comes from {crate['source']}")
        if folder:
            for advisory in advisories(folder, crate["name"], version(crate["version"])):
                row = f"{label}: {advisory['id']}"
                # Nobody looks after it any more: worth knowing, and no defect.
                (notices if advisory.get("informational") else troubles).append(row)
    for row in troubles + notices:
        print(row)
    print(f"{len(crates)} crates, {len(troubles)} troubles, "
          + (f"{len(notices)} notices" if folder else "advisories not looked at"))
    sys.exit(1 if troubles or not crates else 0)


if __name__ == "__main__":
    main()
