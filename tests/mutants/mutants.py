#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Plants defects, one at a time, in a copy of the project: the host tests must catch them.

They are of the kinds that CAKE has had and of those that its algorithm invites. Prints a line for
each; exit status 1 if more than one survives, or if one cannot be planted any more.
"""

import argparse
import dataclasses
import fcntl
import pathlib
import re
import shutil
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
COPY = PROJECT / "build/mutants/tree"
TARGET = pathlib.Path("/cargo/mutants")
LIMIT = 300


@dataclasses.dataclass
class Mutant:
    """A defect: in which file under src/cake, what stands there, and what the defect is."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("a set has one way too few", "hash.rs", "(0..WAYS).map", "(0..WAYS - 1).map"),
    Mutant("a host's flow is not taken back", "tin.rs",
           "(Set::Bulk, _) => self.hosts.lose(mode, flow.hosts),", "(Set::Bulk, _) => {}"),
    Mutant("a flow is taken back from the wrong host", "host.rs",
           "self.dst.lose(pair.dst);", "self.dst.lose(pair.src);"),
    Mutant("a queue that is taken over stays its old host's", "tin/lookup.rs",
           "            self.hosts.lose(mode, flow.hosts);\n", ""),
    Mutant("EF is not in Voice", "diffserv.rs",
           "(3, &[CS4, CS5, VA, EF, CS6, CS7])", "(3, &[CS4, CS5, VA, CS6, CS7])"),
    Mutant("IPv6's DiffServ field is read from one byte", "dissect.rs",
           "((first & 0x0f) << 2) | (second >> 6)", "second >> 2"),
    Mutant("a counter stops at its end", "tin.rs",
           "self.counters.packets = self.counters.packets.wrapping_add(1);",
           "self.counters.packets = self.counters.packets.saturating_add(1);"),
    Mutant("a tin too many", "diffserv.rs", "Self::Diffserv3 => 3,", "Self::Diffserv3 => 4,"),
    Mutant("sequence numbers do not wrap", "ack_filter.rs",
           "(b.wrapping_sub(a) as i32) < 0", "a > b"),
    Mutant("a TCP option of no length goes on for ever", "ack_filter.rs",
           "bytes.get(2..usize::from(len))?", "bytes.get(2..usize::from(len)).unwrap_or_default()"),
    Mutant("a TCP header that lies is believed", "ack_filter.rs",
           "options: bytes.get(TCP_LEN..header_len)?,",
           "options: bytes.get(TCP_LEN..header_len).unwrap_or_default(),"),
    Mutant("6in4 is sought behind 20 bytes, options or not", "ack_filter.rs",
           "let inner = bytes.get(header_len..)?;", "let inner = bytes.get(IPV4_LEN..)?;"),
    Mutant("fragments have ports", "dissect.rs",
           " || u16::from_be_bytes([f0, f1]) & FRAGMENT != 0", ""),
    Mutant("a small packet with a negative overhead is huge", "overhead.rs",
           ".clamp(i64::from(self.mpu), i64::from(u32::MAX)) as u32;",
           ".rem_euclid(1 << 32).max(i64::from(self.mpu)) as u32;"),
    Mutant("a firewall mark is taken as it stands", "config.rs",
           "((mark & self.fwmark) >> self.fwmark.trailing_zeros())", "(mark & self.fwmark)"),
    Mutant("the memory limit is one byte too high", "scheduler/enqueue.rs",
           "while self.memory.used > self.memory.limit", "while self.memory.used > self.memory.limit + 1"),
    Mutant("the heap of backlogs is not kept", "overflow.rs",
           "self.rise(self.position[flow.at()].at(), &bytes);", "let _ = (flow, &bytes);"),
    Mutant("the shaper forgets the overhead", "scheduler/dequeue.rs",
           "self.clock.sent(self.pace.duration(len));",
           "self.clock.sent(self.pace.duration(packet.len()));"),
    Mutant("a flow's last packet may be dropped", "tin.rs",
           "if !flow.queue.is_empty() {\n                self.count_drop",
           "if true {\n                self.count_drop"),
    Mutant("two flows of a host count as one", "tin.rs", "if load <= 1 {", "if load <= 2 {"),
    Mutant("tins that go take their packets along", "scheduler.rs",
           "for tin in spare.iter_mut().flatten() {", "for tin in spare.iter_mut().flatten().take(0) {"),
    Mutant("a change of mode does not count hosts anew", "scheduler.rs",
           "        if recount {", "        if recount && false {"),
    Mutant("unlimited time is saved up", "scheduler.rs",
           "        self.clock.wake(now);\n        if was_unlimited", "        if was_unlimited"),
    Mutant("a slow packet's debt blocks a fast line", "shaper.rs",
           "self.next = self.next.min(limit);", "let _ = limit;"),
    Mutant("the failsafe clock saves up idle time", "shaper.rs",
           "        self.failsafe = self.failsafe.max(now);\n", ""),
    Mutant("a burst is given to no tin", "tin/params.rs",
           "None if spec.above_best_effort => mtu_time,", ""),
    Mutant("a tin keeps its priority above its threshold", "tin.rs",
           "self.clock.charge(now, credit, pace.duration(len));",
           "self.clock.charge(now, credit, pace.duration(len) / 2);"),
    Mutant("sparse flows wait in the bulk rotation", "tin.rs",
           "self.sparse.push(&mut self.flows, index);", "self.bulk.push(&mut self.flows, index);"),
    Mutant("the delay's peak has 32 bits", "stats.rs",
           "ewma(self.peak, sojourn, Self::QUICK)",
           "ewma(self.peak, sojourn & 0xffff_ffff, Self::QUICK)"),
    Mutant("a full set stays full", "tags.rs", "*until = time.min(*until);", "let _ = (until, time);"),
]


def place(mutant):
    """The file that a defect goes into, and its proper text."""
    path = COPY / "src/cake" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        sys.exit(f"{mutant.name}: its place is {text.count(mutant.old)} times in {mutant.file}: "
                 "bring the list up to date")
    return path, text


def test():
    """Runs the host tests; what catches a defect, or nothing."""
    try:
        done = subprocess.run(["cargo", "test", "--quiet", "--offline", "--target-dir", TARGET],
                              cwd=COPY, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return None
    failed = re.findall(r"^    (\w+)$", done.stdout, re.M)
    if not failed and "error: could not compile" in done.stderr:
        sys.exit(f"does not compile:\n{done.stderr}")
    return failed[0] if failed else "a test dies"


def main():
    """Chooses, plants and tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--some", type=int, metavar="N", help="only N of them, evenly spread")
    parser.add_argument("names", nargs="*", help="only those whose name holds one of these words")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not arguments.names
              or any(word in mutant.name for word in arguments.names)]
    if arguments.some:
        chosen = chosen[::max(1, len(chosen) // arguments.some)][:arguments.some]
    # Another checkout's copy would be built in the same place.
    TARGET.mkdir(parents=True, exist_ok=True)
    with open(TARGET / "in-use", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        survivors = play(chosen)
    sys.exit(1 if survivors > (0 if len(chosen) < 20 else 1) else 0)


def play(chosen):
    """Plants and tests; returns how many survived."""
    shutil.rmtree(COPY, ignore_errors=True)
    # Files of today: a run that was cut off may have left a build with a defect, newer than ours.
    shutil.copytree(PROJECT, COPY, copy_function=shutil.copy,
                    ignore=shutil.ignore_patterns(".git", "build", "target"))
    for mutant in MUTANTS:
        place(mutant)
    if caught := test():
        sys.exit(f"the tests fail without any defect: {caught}")
    survivors = 0
    for mutant in chosen:
        started = time.monotonic()
        path, text = place(mutant)
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            caught = test()
        finally:
            path.write_text(text, encoding="utf-8")
        survivors += caught is None
        verdict = f"caught by {caught}" if caught else "SURVIVES"
        print(f"{mutant.name}: {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return survivors


if __name__ == "__main__":
    main()
