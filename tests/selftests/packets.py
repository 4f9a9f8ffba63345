#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What happens to single packets: segments, framing, tins, washing. To be run with time travel."""

import contextlib
import time

from lab import line, main, module, note, plug, qdisc_json, run, test


@contextlib.contextmanager
def gso_line(which, qdisc):
    """A line whose router passes on packets of up to 64 KB."""
    with module(which), line() as (router, [host], [server]):
        for node, device in ((host, "eth0"), (router, "l1"), (router, "wan")):
            node.run("ethtool", "-K", device, "tso", "on", "gso", "on", "gro", "on", "tx", "on")
        router.run(f"tc qdisc add dev wan root {qdisc}")
        yield router, host, server


def upload(host, server, seconds=2):
    """Uploads for some seconds."""
    sink = server.serve()
    host.run("iperf3", "-c", server.address, "-t", str(seconds))
    sink.wait()
    time.sleep(2)


def drained(stats):
    """Fails unless nothing is left and everything that came has left."""
    assert (stats["qlen"], stats["backlog"]) == (0, 0), stats


@test
def packets_are_split_into_segments_or_sent_whole():
    longest = {}
    for which in ("c", "rust"):
        for words in ("split-gso", "no-split-gso"):
            qdisc = f"cake bandwidth 200mbit besteffort {words} overhead 34"
            with gso_line(which, qdisc) as (router, host, server):
                upload(host, server)
                stats = qdisc_json(router, "wan")
                drained(stats)
                [tin] = stats["tins"]
                longest[which, words] = (tin["max_pkt_len"], stats["max_network_size"],
                                         stats["max_adj_size"])
                note(f"{which} {words}: {stats['packets']} packets, longest {tin['max_pkt_len']}, "
                     f"on the link {stats['max_adj_size']}")
                assert stats["packets"] > 10_000
    for words in ("split-gso", "no-split-gso"):
        assert longest["rust", words][1:] == (1500, 1534), longest
        assert longest["c", words][1:] == (1500, 1534), longest
        assert longest["rust", words][0] > 10_000, longest


if __name__ == "__main__":
    main()
