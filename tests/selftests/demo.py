#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Three games and an upload share 2 Mbit/s: first a FIFO, then CAKE.

Plays the seed's line in real time on whatever kernel runs, with the sch_cake that tc loads by
itself; it must be ours.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import statistics
import sys
import time

import lab
from seed import CAKE, EF, FULL, GAME

RATE = 1_969_230
SETUPS = (
    ("FIFO", "tbf rate 1969230bit burst 3kb limit 60kb", "0"),
    ("CAKE", CAKE, "0"),
    ("CAKE, marked EF", CAKE, EF),
)


@dataclasses.dataclass
class Result:
    """What was measured behind one discipline."""

    name: str
    # Delays of all pings in ms, sorted, and how many were lost.
    delays: list
    lost: int
    # Mbit/s that the upload carried, and that the discipline counted on the link.
    upload: float
    link: float
    # What tc shows.
    shown: str

    def at(self, fraction):
        """The delay in ms below which that fraction of the pings stayed."""
        return self.delays[min(int(fraction * len(self.delays)), len(self.delays) - 1)]


def counters(router):
    """Time in s, and bytes on the link as the discipline counts them with the overhead."""
    stats = lab.qdisc_json(router, "wan")
    return time.monotonic(), stats["bytes"] + (34 - 14) * stats["packets"]


def play(name, qdisc, tos, seconds):
    """Plays the line behind one discipline."""
    with lab.line(hosts=4) as (router, [*players, uploader], [server]):
        router.run(f"tc qdisc add dev wan root {qdisc}")
        for host in (*players, uploader):
            host.run("fping", "-c", "2", "-q", server.address)
        sink = server.serve()
        upload = uploader.start("iperf3", "-J", "-c", server.address, "-t", str(seconds + 4))
        time.sleep(3)
        before = counters(router)
        streams = [host.start("fping", "-q", "-b", "150", "-p", "16", "-t", "3000", "-O", tos,
                              "-C", str(int(seconds / 0.016)), server.address)
                   for host in players]
        time.sleep(seconds - 1)
        after = counters(router)
        words = [word for stream in streams
                 for word in stream.communicate()[1].split(":", 1)[1].split()]
        delays = sorted(float(word) for word in words if word != "-")
        shown = router.run("tc -s qdisc show dev wan")
        report = json.loads(upload.communicate()[0])
        sink.wait()
        router.run("tc qdisc del dev wan root")
    link = (after[1] - before[1]) * 8 / (after[0] - before[0]) / 1e6
    carried = report["end"]["sum_received"]["bits_per_second"] / 1e6
    return Result(name, delays, len(words) - len(delays), carried, link, shown)


def table(results):
    """Delays and rates side by side, with bars for the delays."""
    widest = max(result.at(0.99) for result in results)
    rows = [f"{'':16} {'game delay in ms':>23}  {'':30}  upload",
            f"{'':16} {'median':>7} {'99 %':>7} {'worst':>7}  "
            f"{'99 %, ' + format(widest, '.0f') + ' ms wide':30}  Mbit/s of {RATE / 1e6:.2f}"]
    for result in results:
        bar = "█" * max(1, round(30 * result.at(0.99) / widest))
        rows.append(f"{result.name:16} {result.at(0.5):7.1f} {result.at(0.99):7.1f} "
                    f"{result.delays[-1]:7.1f}  {bar:30} {result.upload:7.2f}")
    limit = FULL + 2 * GAME
    rows.append(f"{'physical limit':16} {'':7} {'':7} {limit:7.1f}  "
                f"one full packet in front, and the other games' own")
    return "\n".join(rows)


def doubts(results):
    """What is implausible, one line each."""
    fifo, unmarked, marked = results
    found = []
    for result in results:
        pings = len(result.delays) + result.lost
        if result is not fifo and result.lost > pings / 100:
            found.append(f"{result.name}: {result.lost} of {pings} pings were lost")
    if fifo.at(0.5) < 50:
        found.append(f"FIFO: median delay {fifo.at(0.5):.1f} ms, there should be a queue")
    for result in (unmarked, marked):
        if result.at(0.99) > fifo.at(0.5) / 4:
            found.append(f"{result.name}: {result.at(0.99):.1f} ms for 99 % of the pings is no "
                         f"better than a quarter of the FIFO's median of {fifo.at(0.5):.1f} ms")
        if abs(result.link * 1e6 / RATE - 1) > 0.03:
            found.append(f"{result.name}: {result.link:.3f} Mbit/s on the link where "
                         f"{RATE / 1e6:.3f} were set")
        if result.upload < 1.0:
            found.append(f"{result.name}: the upload carried {result.upload:.2f} Mbit/s")
    if marked.at(0.99) > unmarked.at(0.99) + 5:
        found.append(f"marked games wait longer than unmarked ones: {marked.at(0.99):.1f} ms "
                     f"against {unmarked.at(0.99):.1f} ms")
    return found


def module_is_ours():
    """Whether tc has loaded the module that is not part of the kernel."""
    taint = pathlib.Path("/sys/module/sch_cake/taint")
    return taint.exists() and "O" in taint.read_text(encoding="ascii")


def run(say, seconds):
    """Plays all setups; returns the results and whether the module was ours."""
    results = []
    for number, (name, qdisc, tos) in enumerate(SETUPS, 1):
        say(f"{number}/{len(SETUPS)} {name}: tc qdisc add dev wan root {qdisc} …")
        results.append(play(name, qdisc, tos, seconds))
    ours = module_is_ours()
    lab.run("rmmod sch_cake")
    return results, ours


def demo():
    """For people."""
    kernel = lab.run("uname", "-r").strip()
    print(f"This is {kernel}, unmodified, and {lab.run('tc', '-V').strip()}.")
    print("Three hosts send 150-byte pings every 16 ms, a fourth uploads; the uplink has 2 Mbit/s.")
    results, ours = run(lambda text: print(text, flush=True), 8)
    print(f"\n$ tc -s qdisc show dev wan\n{results[-1].shown}")
    print(table(results))
    shaped = results[-1].link
    print(f"\nThe link was set to {RATE / 1e6:.3f} Mbit/s and carried {shaped:.3f} Mbit/s, "
          f"framing included.")
    print("\n$ rmmod sch_cake; dmesg | grep sch_cake")
    print("\n".join(row for row in lab.run("dmesg").splitlines() if "sch_cake" in row))
    log = lab.kernel_log()
    found = doubts(results)
    if not ours:
        found.insert(0, "tc did not load our module")
    found += [f"kernel log: {row}" for row in log]
    sys.stdout.flush()
    if found:
        sys.exit("Implausible: " + "; ".join(found))
    print("The module is gone, and the kernel log is clean.")


results_of_test = []


@lab.test
def tc_loads_our_module_by_its_alias():
    results, ours = run(lab.note, 5)
    results_of_test.extend(results)
    lab.note(table(results))
    assert ours


@lab.test
def delays_and_rates_are_plausible():
    assert results_of_test, "there are none"
    found = doubts(results_of_test)
    assert not found, "\n".join(found)


# Sends datagrams as fast as it can for some seconds.
FLOOD = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 3
while time.monotonic() < end:
    out.sendto(bytes(1000), (sys.argv[1], 9))
    time.sleep(0.0005)
"""


@lab.test
def drops_carry_their_reasons():
    tracing = pathlib.Path("/sys/kernel/tracing")
    with lab.line() as (router, [host], [server]):
        router.run("tc qdisc add dev wan root cake bandwidth 2mbit memlimit 60000")
        (tracing / "events/qdisc/qdisc_drop/enable").write_text("1", encoding="ascii")
        host.run(sys.executable, "-c", FLOOD, server.address)
        sink = server.serve()
        host.run("iperf3", "-c", server.address, "-t", "3")
        sink.wait()
        (tracing / "events/qdisc/qdisc_drop/enable").write_text("0", encoding="ascii")
        trace = (tracing / "trace").read_text(encoding="utf-8")
        router.run("tc qdisc del dev wan root")
    lab.run("rmmod sch_cake")
    reasons = collections.Counter(re.findall(r"kind=cake .*reason=(\w+)", trace))
    lab.note(dict(reasons))
    assert {"OVERLIMIT", "CONGESTED", "FLOOD_PROTECTION"} <= set(reasons), reasons


@lab.test
def module_is_gone_and_the_log_is_clean():
    assert not lab.is_loaded()
    assert not lab.kernel_log(), lab.kernel_log()


if __name__ == "__main__":
    if "--assert" in sys.argv[1:]:
        sys.argv.remove("--assert")
        lab.main()
    argparse.ArgumentParser(description=__doc__).parse_args()
    demo()
