#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Classes: what tc shows of flows in use. To be run with time travel."""

import json
import sys
import time

from lab import line, main, module, note, qdisc_json, test


# What tc shows only while it applies.
PASSING = {"dropping", "drop_next", "blue_timer"}


def classes(router):
    """The classes of the router's link as tc's JSON has them."""
    return json.loads(router.run("tc -s -j class show dev wan"))


def seen_by(which):
    """Classes under load, keys of their statistics, and classes long after."""
    with module(which), line(hosts=2) as (router, hosts, [server]):
        router.run("tc qdisc add dev wan root handle 1: cake bandwidth 2mbit diffserv4")
        for host in hosts:
            host.run("fping", "-c", "1", "-q", server.address)
        sinks = [server.serve(5201 + i) for i in range(2)]
        uploads = [host.start("iperf3", "-c", server.address, "-p", str(5201 + i), "-t", "5",
                              "-S", tos)
                   for i, (host, tos) in enumerate(zip(hosts, ("0", "0xb8")))]
        time.sleep(4)
        under_load, qdisc = classes(router), qdisc_json(router, "wan")
        text = router.run("tc -s class show dev wan")
        for process in (*uploads, *sinks):
            process.wait()
        time.sleep(60)
        return under_load, qdisc, text, classes(router)


@test
def classes_are_the_flows_in_use():
    keys = {}
    for which in ("c", "rust"):
        under_load, qdisc, text, afterwards = seen_by(which)
        busy = [row for row in under_load if row["stats"]["backlog"]]
        note(f"{which}: {len(under_load)} classes, {len(busy)} with a backlog")
        assert len(busy) == 2, under_load
        # Minor numbers count the queues of the tins in the order in which they are shown.
        tins = sorted((int(row["handle"].split(":")[1], 16) - 1) // 1024 for row in busy)
        assert tins == [1, 3], tins
        assert sum(row["stats"]["backlog"] for row in busy) == qdisc["backlog"]
        assert sum(row["stats"]["qlen"] for row in busy) == qdisc["qlen"]
        keys[which] = {key for row in busy for key in row["stats"]} - PASSING
        assert text.count("class cake 1:") == len(under_load)
        assert not any(row["stats"]["backlog"] for row in afterwards), afterwards
    assert keys["c"] == keys["rust"], keys


@test
def walk_over_many_classes_goes_on_from_message_to_message():
    """More classes than one netlink message holds: each is shown once."""
    for which in ("c", "rust"):
        with module(which), line() as (router, [host], [server]):
            router.run("tc qdisc add dev wan root handle 1: cake bandwidth 64kbit diffserv8 flows")
            host.run("fping", "-c", "1", "-q", server.address)
            host.run(sys.executable, "-c", "import socket\n"
                     "out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                     "for i in range(600):\n"
                     "    out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, i % 8 << 5)\n"
                     f"    out.sendto(bytes(500), ('{server.address}', 9000 + i))\n")
            handles = [row["handle"] for row in classes(router)]
            stats = qdisc_json(router, "wan")
        note(f"{which}: {len(handles)} classes for {stats['qlen']} packets of as many flows")
    # The C module's walk goes on in the next tin when a message is full, and loses some.
    assert len(set(handles)) == len(handles), "some are shown twice"
    assert 590 <= len(handles) <= 610, len(handles)


if __name__ == "__main__":
    main()
