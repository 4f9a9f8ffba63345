#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""cake as the child of other disciplines: none of them loses count.

To be run with time travel. Each has GSO packets split, packets dropped by the memory limit and by
the AQM, and acknowledgements filtered beneath it; when all is drained nothing must be left.
"""

import json
import re
import time

from lab import kernel_log, line, main, module, note, test

CAKE = "cake bandwidth 20mbit memlimit 30000 ack-filter split-gso nat"

# Commands that build each parent on the router's device, with cake 10: as its child.
PARENTS = {
    "htb": ("qdisc add dev wan root handle 1: htb default 1",
            "class add dev wan parent 1: classid 1:1 htb rate 30mbit",
            f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "hfsc": ("qdisc add dev wan root handle 1: hfsc default 1",
             "class add dev wan parent 1: classid 1:1 hfsc ls rate 30mbit ul rate 30mbit",
             f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "drr": ("qdisc add dev wan root handle 1: drr",
            "class add dev wan parent 1: classid 1:1 drr quantum 3000",
            "filter add dev wan parent 1: protocol all matchall classid 1:1",
            f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "qfq": ("qdisc add dev wan root handle 1: qfq",
            "class add dev wan parent 1: classid 1:1 qfq weight 10 maxpkt 65536",
            "filter add dev wan parent 1: protocol all matchall classid 1:1",
            f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "prio": ("qdisc add dev wan root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
             f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "tbf": ("qdisc add dev wan root handle 1: tbf rate 30mbit burst 100kb latency 1s",
            f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
    "netem": ("qdisc add dev wan root handle 1: netem delay 3ms",
              f"qdisc add dev wan parent 1:1 handle 10: {CAKE}"),
}


def left(router):
    """Bytes and packets queued in each discipline on the link. tc's JSON for hfsc is none."""
    text = router.run("tc -s qdisc show dev wan")
    return {kind: (int(size), int(packets)) for kind, size, packets in re.findall(
        r"^qdisc (\w+) .*?backlog (\d+)b (\d+)p", text, re.DOTALL | re.MULTILINE)}


def play(which, commands):
    """Sends all that may confuse a parent; returns the counters once everything is drained."""
    with module(which), line() as (router, [host], [server]):
        for node, device in ((host, "eth0"), (router, "l1"), (router, "wan")):
            node.run("ethtool", "-K", device, "tso", "on", "gso", "on", "gro", "on", "tx", "on")
        for words in commands:
            router.run(f"tc {words}")
        sinks = [server.serve(5201 + i) for i in range(3)]
        # Uploads of large packets, a flood that the memory limit meets, and a download, whose
        # acknowledgements come this way.
        uploads = [
            host.start("iperf3", "-c", server.address, "-p", "5201", "-t", "4", "-P", "4"),
            host.start("iperf3", "-c", server.address, "-p", "5202", "-t", "4", "-u", "-b", "40M"),
            host.start("iperf3", "-c", server.address, "-p", "5203", "-t", "4", "-R", "-b", "60M"),
        ]
        for process in (*uploads, *sinks):
            process.wait()
        time.sleep(10)
        remains = left(router)
        [cake] = json.loads(router.run("tc -s -j qdisc show dev wan parent 1:1"))
        # The parent must be alive still.
        host.run("fping", "-c", "3", "-q", server.address)
        router.run("tc qdisc del dev wan root")
    return cake, remains


def check(parent):
    """Fails if anything is left behind beneath a parent."""
    for which in ("c", "rust"):
        cake, remains = play(which, PARENTS[parent])
        tins = cake["tins"]
        note(f"{parent:5} {which:4} {cake['packets']} sent, {cake['drops']} dropped, "
             f"{sum(tin['ack_drops'] for tin in tins)} of them acknowledgements, longest "
             f"{max(tin['max_pkt_len'] for tin in tins)}")
        if which == "c":
            continue
        assert cake["packets"] > 5000 and cake["drops"] > 100, cake
        assert max(tin["max_pkt_len"] for tin in tins) > 2000, "nothing was split"
        assert sum(tin["ack_drops"] for tin in tins) > 0, "no acknowledgement was filtered"
        assert set(remains) == {parent, "cake"}, remains
        assert not any(map(any, remains.values())), remains


@test
def htb_keeps_count():
    check("htb")


@test
def hfsc_keeps_count():
    check("hfsc")


@test
def drr_keeps_count():
    check("drr")


@test
def qfq_keeps_count():
    check("qfq")


@test
def prio_keeps_count():
    check("prio")


@test
def tbf_keeps_count():
    check("tbf")


@test
def netem_keeps_count():
    check("netem")


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


if __name__ == "__main__":
    main()
