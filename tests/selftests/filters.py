#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Classification from outside: marks, priorities and tc filters, beside the C module.

To be run with time travel.
"""

import contextlib
import json
import sys
import time

from lab import line, main, module, note, qdisc_json, test

# Sends ten datagrams to each of the ports.
SENDER = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in sys.argv[2:]:
    for _ in range(10):
        out.sendto(bytes(100), (sys.argv[1], int(port)))
        time.sleep(0.001)
"""


@contextlib.contextmanager
def shaped(which, words):
    """A line with cake 1: on it, on which nothing but the test's packets go."""
    with module(which), line() as (router, [host], [server]):
        router.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        host.run("fping", "-c", "1", "-q", server.address)
        router.run(f"tc qdisc add dev wan root handle 1: cake {words}")
        yield router, host, server


def mark(router, statement):
    """Has the router do something to every packet that it sends over the link."""
    for words in ("add table inet mangle",
                  "add chain inet mangle post { type filter hook postrouting priority -150 ; }",
                  f"add rule inet mangle post oifname wan {statement}"):
        router.run("nft", words)


def packets_by_tin(router):
    """Packets that came to each tin, in display order."""
    return [tin["sent_packets"] for tin in qdisc_json(router, "wan")["tins"]]


def tins_for(which, words, statement):
    """Packets by tin while the router marks them so."""
    with shaped(which, words) as (router, host, server):
        mark(router, statement)
        host.run(sys.executable, "-c", SENDER, server.address, "5000")
        return packets_by_tin(router)


@test
def firewall_marks_name_tins_through_any_mask():
    for words, value, expected in (
            ("diffserv4 fwmark 0xff", "3", 2), ("diffserv4 fwmark 0xf0", "0x10", 0),
            ("diffserv3 fwmark 0xc0000000", "0x80000000", 1), ("diffserv8 fwmark 0x7", "7", 6),
            ("diffserv8 fwmark 0x80000000", "0x80000000", 0), ("diffserv4 fwmark 0xff", "5", 1),
            ("diffserv4", "3", 1), ("besteffort fwmark 0xff", "1", 0),
            ("precedence fwmark 0xff", "0", 0)):
        theirs, ours = (tins_for(which, words, f"meta mark set {value}") for which in ("c", "rust"))
        assert ours == theirs, f"{words} {value}: {ours}, C {theirs}"
        assert ours[expected] == 10, f"{words} {value}: {ours}"


@test
def priorities_name_tins_of_their_instance():
    for words, value, expected in (("diffserv4", "1:4", 3), ("diffserv4", "1:1", 0),
                                   ("diffserv4", "2:4", 1), ("diffserv4", "1:5", 1),
                                   ("diffserv4", "1:0", 1)):
        theirs, ours = (tins_for(which, words, f"meta priority set {value}")
                        for which in ("c", "rust"))
        assert ours == theirs, f"{words} {value}: {ours}, C {theirs}"
        assert ours[expected] == 10, f"{words} {value}: {ours}"


def filtered(which, words, *filters):
    """Classes in use and the discipline's counters after ten packets to each of three ports."""
    with shaped(which, words) as (router, host, server):
        router.run("ip link add aside type dummy")
        router.run("ip link set aside up")
        for rule in filters:
            router.run(f"tc filter add dev wan parent 1: {rule}")
        host.run(sys.executable, "-c", SENDER, server.address, "5000", "5001", "5002")
        stats = qdisc_json(router, "wan")
        classes = sorted(row["handle"] for row in json.loads(
            router.run("tc -s -j class show dev wan")))
        router.run("tc filter del dev wan parent 1:")
        return classes, stats["packets"], stats["drops"]


def port(number, rest):
    """A filter for datagrams to a port."""
    return f"protocol ip prio 1 u32 match ip dport {number} 0xffff {rest}"


@test
def filters_name_queues():
    rules = (port(5000, "classid 1:5"), port(5001, "classid 1:400"), port(5002, "classid 1:401"))
    theirs, ours = (filtered(which, "bandwidth 100kbit flows besteffort", *rules)
                    for which in ("c", "rust"))
    note(f"C {theirs}, Rust {ours}")
    assert {"1:5", "1:400"} <= set(ours[0]), ours
    assert {"1:5", "1:400"} <= set(theirs[0]), theirs
    assert ours[2] == theirs[2] == 0, (ours, theirs)


@test
def filters_act_as_with_the_c_module():
    for action, packets, drops in (
            ("action drop", 20, 10), ("action pass", 30, 0), ("action trap", 20, 0),
            ("action mirred egress redirect dev aside", 20, 0),
            ("action mirred egress mirror dev aside", 30, 0)):
        rules = (port(5001, f"classid 1:7 {action}"),)
        theirs, ours = (filtered(which, "diffserv3", *rules)[1:] for which in ("c", "rust"))
        note(f"{action}: C {theirs}, Rust {ours}")
        assert ours == theirs == (packets, drops), f"{action}: {ours}, C {theirs}"


@test
def filters_change_under_load():
    for which in ("c", "rust"):
        with shaped(which, "bandwidth 20mbit diffserv4") as (router, host, server):
            mark(router, "meta mark set 0x10")
            sink = server.serve()
            upload = host.start("iperf3", "-c", server.address, "-t", "60")
            for i in range(100):
                router.run(f"tc filter replace dev wan parent 1: protocol ip prio 1 handle 0x10 "
                           f"fw classid 1:{i % 4 + 1}")
                time.sleep(0.01)
                if i % 10 == 9:
                    router.run("tc filter del dev wan parent 1:")
            assert upload.poll() is None, upload.communicate()
            upload.terminate()
            upload.wait()
            sink.wait()
            time.sleep(5)
            stats = qdisc_json(router, "wan")
            note(f"{which}: {stats['packets']} packets meanwhile")
            assert stats["packets"] > 1000 and stats["qlen"] == 0, stats


if __name__ == "__main__":
    main()
