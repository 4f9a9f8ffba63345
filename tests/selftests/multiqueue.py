#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""cake_mq on a device with four queues, beside the C module. To be run with time travel."""

import contextlib
import json
import sys
import time

from lab import kernel_log, main, module, namespaces, note, run, test

TC = "/opt/iproute2/usr/sbin/tc"
QUEUES = 4

# Sends datagrams at a given rate; the kernel picks the queue by the priority of the socket.
SENDER = """
import socket, sys, time
address, port, mbit, seconds, priority = sys.argv[1], *map(float, sys.argv[2:])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, int(priority))
end = time.monotonic() + seconds
while time.monotonic() < end:
    for _ in range(10):
        out.sendto(bytes(1000), (address, int(port)))
    time.sleep(10 * 1042 * 8 / mbit / 1e6)
"""


@contextlib.contextmanager
def pair(which):
    """Two namespaces joined by a link whose near end, eth0, has four queues."""
    with module(which), namespaces("near", "far") as (near, far):
        run("ip", "link", "add", "eth0", "netns", "near", "numtxqueues", str(QUEUES),
            "numrxqueues", str(QUEUES), "type", "veth", "peer", "name", "eth0", "netns", "far",
            "numtxqueues", str(QUEUES), "numrxqueues", str(QUEUES))
        for host, address in ((near, "192.0.2.1"), (far, "192.0.2.2")):
            host.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
            host.run(f"ip addr add {address}/24 dev eth0")
            host.run("ip link set eth0 up")
        yield near, far


def children(near):
    """The disciplines on the queues, in their order, as tc's JSON has them."""
    rows = json.loads(near.run(TC, "-s", "-j", "qdisc", "show", "dev", "eth0"))
    return sorted((row for row in rows if row["kind"] == "cake"), key=lambda row: row["parent"])


@test
def configuration_reaches_all_queues_and_no_single_one():
    for which in ("c", "rust"):
        with pair(which) as (near, _):
            near.run(TC, *"qdisc add dev eth0 root handle 1: cake_mq bandwidth 8mbit".split())
            near.run(TC, *"qdisc change dev eth0 root cake_mq diffserv4 rtt 50ms".split())
            options = [row["options"] for row in children(near)]
            assert len(options) == QUEUES and all(one == options[0] for one in options), options
            assert options[0]["diffserv"] == "diffserv4" and options[0]["rtt"] == 50000, options
            for words in ("qdisc change dev eth0 parent 1:1 cake bandwidth 1mbit",
                          "qdisc replace dev eth0 parent 1:1 cake", "qdisc del dev eth0 parent 1:1",
                          "qdisc change dev eth0 root cake_mq autorate-ingress"):
                near.run(TC, *words.split(), check=False)
                assert [row["options"] for row in children(near)] == options, words
            if which == "rust":
                assert near.run(TC, *"-s qdisc show dev eth0".split()).count("cake_mq 1:") == 1


def loaded(which, queues):
    """Mbit/s that each queue carries, and how many share, while some are overloaded."""
    with pair(which) as (near, far):
        near.run(TC, *"qdisc add dev eth0 root handle 1: cake_mq bandwidth 40mbit diffserv4"
                        .split())
        # Each priority to a queue of its own.
        near.run(*"tc qdisc add dev eth0 clsact".split())
        for queue in range(QUEUES):
            near.run("tc", "filter", "add", "dev", "eth0", "egress", "protocol", "ip", "u32",
                     "match", "ip", "dport", str(9000 + queue), "0xffff", "action", "skbedit",
                     "queue_mapping", str(queue))
        near.run("fping", "-c", "1", "-q", "192.0.2.2")
        senders = [near.start(sys.executable, "-c", SENDER, "192.0.2.2", str(9000 + queue), "60",
                              "6", "0") for queue in range(queues)]
        time.sleep(2)
        before = children(near)
        time.sleep(3)
        after = children(near)
        for sender in senders:
            sender.wait()
        time.sleep(5)
        left = children(near)
    # Every tin follows, not the first alone: Bulk, Best Effort, Video, Voice.
    thresholds = [tin["threshold_rate"] for tin in after[0]["tins"]]
    share = 40_000_000 // 8 // queues
    assert thresholds == [share >> 4, share, share >> 1, share >> 2], thresholds
    rates = [(new["bytes"] - old["bytes"]) * 8 / 3e6 for old, new in zip(before, after)]
    note(f"{which:4} {queues} queues busy: " + " : ".join(f"{rate:.1f}" for rate in rates)
         + " Mbit/s")
    assert not any(row["qlen"] or row["backlog"] for row in left), left
    return rates


@test
def rate_is_divided_among_busy_queues():
    for queues in (1, 2, 4):
        for which in ("c", "rust"):
            rates = loaded(which, queues)
        assert abs(sum(rates) / 40 - 1) < 0.02, rates
        for rate in rates[:queues]:
            assert abs(rate / (40 / queues) - 1) < 0.03, rates


@test
def mq_above_cake_keeps_count():
    for which in ("c", "rust"):
        with pair(which) as (near, _):
            near.run(*"tc qdisc add dev eth0 root handle 1: mq".split())
            for queue in range(1, QUEUES + 1):
                near.run("tc", "qdisc", "add", "dev", "eth0", "parent", f"1:{queue:x}", "cake",
                         "bandwidth", "10mbit", "memlimit", "40000")
            near.run("fping", "-c", "1", "-q", "192.0.2.2")
            near.run(sys.executable, "-c", SENDER, "192.0.2.2", "9000", "60", "3", "0")
            time.sleep(5)
            rows = json.loads(near.run(TC, "-s", "-j", "qdisc", "show", "dev", "eth0"))
            left = [(row["kind"], row["qlen"], row["backlog"]) for row in rows]
            sent = sum(row["packets"] for row in rows if row["kind"] == "cake")
            drops = sum(row["drops"] for row in rows if row["kind"] == "cake")
        note(f"{which}: {sent} sent, {drops} dropped")
        assert sent > 1000 and drops > 1000, rows
        assert all((qlen, backlog) == (0, 0) for _, qlen, backlog in left), left


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


if __name__ == "__main__":
    main()
