#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Traffic, dumps and changes from different CPUs at once. To be run on several.

    scripts/vm.sh --cpus 4 python3 tests/selftests/smp.py
"""

import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import socket
import time

from lab import Skip, kernel_log, main, module, namespaces, note, run, short, test
from rtnetlink import (RTM_GETQDISC, RTM_GETTCLASS, TCA_CAKE_ACK_FILTER, TCA_CAKE_ATM,
                       TCA_CAKE_BASE_RATE64, TCA_CAKE_DIFFSERV_MODE, TCA_CAKE_FLOW_MODE, TCA_CAKE_NAT,
                       TCA_CAKE_SPLIT_GSO, TCA_CAKE_WASH, Netlink, u32, u64)

TC = "/opt/iproute2/usr/sbin/tc"
PKTGEN = pathlib.Path("/proc/net/pktgen")
SENT = re.compile(r"pkts-sofar: (\d+)\s+errors: (\d+)")
QUEUES = 4


def cpus():
    """The CPUs, at least two."""
    count = os.cpu_count() or 1
    if count < 2:
        raise Skip("there is one CPU alone")
    return range(count)


def some_options(dice):
    """Options under which packets still get through quickly: pktgen does not give up."""
    options = [u64(TCA_CAKE_BASE_RATE64, dice.choice((0, 1 << 27, 1 << 30)))]
    for kind, count in ((TCA_CAKE_DIFFSERV_MODE, 5), (TCA_CAKE_FLOW_MODE, 8), (TCA_CAKE_ATM, 3),
                        (TCA_CAKE_ACK_FILTER, 3), (TCA_CAKE_NAT, 2), (TCA_CAKE_WASH, 2),
                        (TCA_CAKE_SPLIT_GSO, 2)):
        options.append(u32(kind, dice.randrange(count)))
    return b"".join(dice.sample(options, dice.randrange(1, 5)))


def meddle(cpu, kind, until):
    """Changes and dumps the discipline from one CPU; returns how often."""
    os.sched_setaffinity(0, {cpu})
    dice, done = random.Random(cpu), 0
    index = socket.if_nametoindex("d0")
    with Netlink() as netlink:
        while time.monotonic() < until:
            if dice.random() < 0.5:
                netlink.change(index, some_options(dice), kind=kind)
            else:
                netlink.dump(dice.choice((RTM_GETQDISC, RTM_GETTCLASS)), index)
            done += 1
    return done


def flood(count):
    """Has pktgen send `count` packets from each CPU, each to a queue of its own if there are so
    many; returns how many packets were sent and how many were refused."""
    for cpu in cpus():
        (PKTGEN / f"kpktgend_{cpu}").write_text("rem_device_all\n", encoding="ascii")
        (PKTGEN / f"kpktgend_{cpu}").write_text(f"add_device d0@{cpu}\n", encoding="ascii")
        for line in (f"count {count}", "pkt_size 700", "delay 0", "burst 1",
                     "xmit_mode queue_xmit", "src_min 192.0.2.1", "src_max 192.0.2.20",
                     "dst_min 198.51.100.1", "dst_max 198.51.100.32", "udp_src_min 1000",
                     "udp_src_max 1099", "flag UDPSRC_RND", "flag IPSRC_RND",
                     f"queue_map_min {cpu % QUEUES}", f"queue_map_max {cpu % QUEUES}"):
            (PKTGEN / f"d0@{cpu}").write_text(line + "\n", encoding="ascii")
    (PKTGEN / "pgctrl").write_text("start\n", encoding="ascii")
    found = [SENT.search((PKTGEN / f"d0@{cpu}").read_text(encoding="ascii")) for cpu in cpus()]
    return sum(int(match[1]) for match in found), sum(int(match[2]) for match in found)


@contextlib.contextmanager
def device():
    """d0, with four queues, in the namespace that pktgen is in: the first."""
    run("modprobe", "-a", "dummy", "pktgen")
    run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
    run("ip", "link", "add", "d0", "numtxqueues", str(QUEUES), "type", "dummy")
    run("ip link set d0 up")
    try:
        yield
    finally:
        run("ip link del d0")


def play(kind, words):
    """Floods from all CPUs while two of them change and dump; then everything must add up."""
    count = 3000 if short() else 50_000
    with module("rust"), namespaces(), device():
        run(TC, *f"qdisc add dev d0 root handle 1: {kind} {words}".split())
        with multiprocessing.Pool(2) as crowd:
            until = time.monotonic() + (10 if short() else 60)
            busy = crowd.starmap_async(meddle, [(cpu, kind.encode(), until) for cpu in cpus()[-2:]],
                                       chunksize=1)
            sent = 0
            while not busy.ready():
                sent += flood(count)[0]
            changes = sum(busy.get())
        run(TC, *f"qdisc change dev d0 root {kind} unlimited besteffort".split())
        # Whoever waits for the shaper is woken by whoever comes next.
        sent += flood(100)[0]
        time.sleep(1)
        rows = json.loads(run(TC, "-s", "-j", "qdisc", "show", "dev", "d0"))
    rows = [row for row in rows if row["kind"] == "cake"]
    note(f"{kind}: {sent} packets from {len(cpus())} CPUs, {changes} changes and dumps, "
         f"{sum(row['packets'] for row in rows)} sent on, {sum(row['drops'] for row in rows)} dropped")
    assert sent > count and changes > 20, (sent, changes)
    for row in rows:
        assert (row["qlen"], row["backlog"]) == (0, 0), row
    assert sum(row["packets"] + row["drops"] for row in rows) >= sent, (sent, rows)


@test
def one_queue_serves_all_cpus():
    play("cake", "bandwidth 10gbit")


@test
def each_queue_has_its_cake():
    play("cake_mq", "bandwidth 10gbit")


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


if __name__ == "__main__":
    main()
