#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Settings of single tins: what raw requests may say, and what becomes of settings.

To be run with time travel.
"""

import contextlib
import errno
import json
import os
import socket
import struct

from lab import line, main, module, qdisc_json, test, with_plugin
from rtnetlink import (BURST, DSCP, INTERVAL, RATE64, RESET, SHARE, TARGET, TCA_CAKE_BASE_RATE64,
                       TCA_CAKE_DIFFSERV_MODE, TCA_CAKE_TINS, Netlink, attribute, tin, u32, u64)
from show import box_with_dummy

BULK, BESTEFFORT, VOICE = 1, 2, 3


def request(*options):
    """Asks the kernel to change the cake on d0: (errno, explanation)."""
    with Netlink() as netlink:
        return netlink.change(socket.if_nametoindex("d0"), *options)


def shown(box):
    """What the plugin shows of d0."""
    return box.run("tc -s -j qdisc show dev d0", env=with_plugin())


@contextlib.contextmanager
def tuned():
    """A namespace that this process is in, with a cake on d0 whose tins are set."""
    with module("rust"), box_with_dummy() as box:
        box.run("tc qdisc add dev d0 root handle 1: cake bandwidth 2mbit "
                "tin bulk dscp af11 tin voice target 10ms interval 60ms", env=with_plugin())
        with box.entered():
            yield box


# Options, the error, and what the explanation must hold.
BAD = [
    ([tin(4, u32(TARGET, 1))], errno.EINVAL, ["TCA_CAKE_TINS", "4"]),
    ([tin(0, u32(TARGET, 1))], errno.EINVAL, ["TCA_CAKE_TINS", "0"]),
    ([tin(VOICE, u64(RATE64, 1000), u32(SHARE, 1000))], errno.EINVAL, ["voice", "THRESH_SHARE"]),
    ([tin(VOICE, u64(RATE64, 63))], errno.ERANGE, ["voice", "THRESH_RATE64"]),
    ([tin(BULK, u32(SHARE, 1000001))], errno.ERANGE, ["bulk", "THRESH_SHARE"]),
    ([tin(BULK, u32(SHARE, 0xFFFFFFFF))], errno.ERANGE, ["bulk", "THRESH_SHARE"]),
    ([tin(VOICE, u32(INTERVAL, 10000))], errno.EINVAL, ["voice", "INTERVAL"]),
    ([tin(VOICE, u32(TARGET, 60000))], errno.EINVAL, ["voice", "TARGET"]),
    ([tin(BULK, u32(TARGET, 9), u32(INTERVAL, 9))], errno.EINVAL, ["bulk", "INTERVAL"]),
    ([tin(VOICE, u32(BURST, (1 << 20) + 1))], errno.ERANGE, ["voice", "BURST"]),
    ([tin(VOICE, u64(DSCP, 1 << 10))], errno.EINVAL, ["voice", "DSCP", "af11", "bulk"]),
    ([attribute(TCA_CAKE_TINS, attribute(BULK, u64(DSCP, 1 << 33)),
                attribute(VOICE, u64(DSCP, 1 << 33)))], errno.EINVAL, ["DSCP", "33"]),
    # Twice.
    ([tin(VOICE, u32(BURST, 0), u32(BURST, 0))], errno.EINVAL, ["voice", "BURST", "twice"]),
    ([attribute(TCA_CAKE_TINS, attribute(VOICE, u32(BURST, 0)), attribute(VOICE, u32(BURST, 0)))],
     errno.EINVAL, ["voice", "twice"]),
    ([tin(VOICE, u32(BURST, 0)), tin(BULK, u32(BURST, 0))], errno.EINVAL, ["TINS", "twice"]),
    # Wrong lengths.
    ([tin(VOICE, attribute(TARGET, bytes(3)))], errno.EINVAL, ["voice", "TARGET", "4 bytes"]),
    ([tin(VOICE, u64(TARGET, 1))], errno.EINVAL, ["voice", "TARGET", "4 bytes"]),
    ([tin(VOICE, u32(RATE64, 1000))], errno.EINVAL, ["voice", "RATE64", "8 bytes"]),
    ([tin(VOICE, u32(DSCP, 1))], errno.EINVAL, ["voice", "DSCP", "8 bytes"]),
    ([tin(VOICE, u32(RESET, 1))], errno.EINVAL, ["voice", "RESET", "0 bytes"]),
    ([tin(VOICE, attribute(BURST))], errno.EINVAL, ["voice", "BURST", "4 bytes"]),
    # Cut off.
    ([tin(VOICE, struct.pack("=HH", 8, TARGET))], errno.EINVAL, ["voice", "cut off"]),
    ([tin(VOICE, struct.pack("=HHI", 3, TARGET, 1))], errno.EINVAL, ["voice", "cut off"]),
    ([tin(VOICE, b"\4")], errno.EINVAL, ["voice", "cut off"]),
    ([attribute(TCA_CAKE_TINS, struct.pack("=HH", 5, VOICE))], errno.EINVAL, ["TINS", "cut off"]),
    ([attribute(TCA_CAKE_TINS, b"\1\0\0")], errno.EINVAL, ["TINS", "cut off"]),
    # Unknown.
    ([tin(VOICE, u32(99, 1))], errno.EINVAL, ["voice", "99"]),
    ([tin(VOICE, u32(0, 1))], errno.EINVAL, ["voice", "0"]),
    ([tin(9, u32(TARGET, 1))], errno.EINVAL, ["TCA_CAKE_TINS", "9"]),
]


@test
def bad_requests_are_refused_whole_and_explained():
    with tuned() as box:
        before = shown(box)
        good = [u64(TCA_CAKE_BASE_RATE64, 1000)]
        for options, wanted, parts in BAD:
            error, message = request(*good, *options)
            assert error == wanted, f"{parts}: {errno.errorcode.get(error, error)}: {message}"
            assert all(part in message for part in parts), f"{parts}: {message}"
            assert shown(box) == before, f"{message}: something changed"


@test
def random_bytes_change_nothing_unless_they_are_accepted():
    with tuned() as box:
        before, refused = shown(box), 0
        for _ in range(2000):
            data = os.urandom(1 + os.urandom(1)[0] % 40)
            options = attribute(TCA_CAKE_TINS, attribute(data[0] % 5, data[1:]))
            if request(u64(TCA_CAKE_BASE_RATE64, 1000), options)[0]:
                refused += 1
            else:
                box.run("tc qdisc change dev d0 root cake bandwidth 2mbit tin bulk default dscp af11 "
                        "tin besteffort default tin voice default target 10ms interval 60ms",
                        env=with_plugin())
        assert shown(box) == before
        assert refused > 1000, refused


def settings(host, device="d0"):
    """What is set of tins on a device."""
    text = host.run(f"tc -j qdisc show dev {device} root", env=with_plugin())
    return json.loads(text)[0]["options"].get("tins")


@test
def edges_are_accepted():
    with tuned() as box:
        for options in (
                [tin(VOICE, u64(RATE64, 64))], [tin(VOICE, u32(SHARE, 1))],
                [tin(VOICE, u32(SHARE, 1000000))], [tin(VOICE, u64(RATE64, 2**64 - 1))],
                [tin(VOICE, u32(BURST, 1 << 20))], [tin(VOICE, u64(DSCP, 2**64 - 1 - (1 << 10)))],
                [tin(VOICE, u32(TARGET, 59999))], [attribute(TCA_CAKE_TINS)], [tin(VOICE)],
                [attribute(TCA_CAKE_TINS | 0x8000, attribute(VOICE | 0x8000, u32(BURST, 0)))],
                # Two tins swap a code point in one request.
                [attribute(TCA_CAKE_TINS, attribute(VOICE, u64(DSCP, 1 << 10)),
                           attribute(BULK, u64(DSCP, 1 << 12)))]):
            assert request(*options) == (0, ""), options
        assert request(tin(VOICE, u32(TARGET, 5), attribute(RESET))) == (0, "")
        assert settings(box) == [{"tin": "bulk", "dscp": ["af12"]}, {"tin": "voice", "target_us": 5}]
        # Zero is the way back, but for the burst.
        assert request(tin(VOICE, u32(TARGET, 0), u32(BURST, 0))) == (0, "")
        assert request(tin(BULK, u64(DSCP, 0))) == (0, "")
        assert settings(box) == [{"tin": "voice", "burst": 0}]


def thresholds(box):
    """The threshold rates of the tins on d0."""
    return [row["threshold_rate"] for row in json.loads(shown(box))[0]["tins"]]


@test
def shares_follow_the_bandwidth_and_settings_go_with_the_mode():
    with tuned() as box:
        assert request(tin(VOICE, u32(SHARE, 500000))) == (0, "")
        assert request(tin(BULK, u64(RATE64, 5000))) == (0, "")
        for mbit in (2, 40, 1):
            box.run(f"tc qdisc change dev d0 root cake bandwidth {mbit}mbit diffserv3")
            assert thresholds(box) == [5000, mbit * 125000, mbit * 62500], thresholds(box)
        box.run("tc qdisc change dev d0 root cake unlimited nat")
        assert len(settings(box)) == 2 and thresholds(box) == [0, 0, 0]
        box.run("tc qdisc change dev d0 root cake diffserv4")
        assert settings(box) is None
        # Settings in a request that changes the mode are the new mode's.
        assert request(u32(TCA_CAKE_DIFFSERV_MODE, 3), tin(1, u32(BURST, 7))) == (0, "")
        assert settings(box) == [{"tin": "tin0", "burst": 7}]


@test
def shares_follow_autorate():
    with module("rust"), line() as (router, [host], [server]):
        router.run("tc qdisc add dev wan root cake bandwidth 1mbit autorate-ingress "
                   "tin voice thresh 50%", env=with_plugin())
        host.run("ping", "-c", "400", "-i", "0.01", "-s", "1000", server.address)
        shown_now = qdisc_json(router, "wan")
        bandwidth = shown_now["options"]["bandwidth"]
        assert abs(bandwidth - 125000) > 5000, bandwidth
        assert abs(shown_now["tins"][2]["threshold_rate"] - bandwidth / 2) <= 1, shown_now
        assert settings(router, "wan") == [{"tin": "voice", "thresh_share_ppm": 500000}]


@test
def code_points_go_to_the_tin_that_names_them():
    with module("rust"), line() as (router, [host], [server]):
        # Nobody else is to send.
        router.run("sysctl -qw net.ipv6.conf.wan.disable_ipv6=1")
        router.run("tc qdisc add dev wan root cake bandwidth 10mbit")
        cs4 = f"ping -c 5 -i 0.01 -Q 0x80 {server.address}"

        def expect(words, *wanted):
            """After a change, five marked pings add so many packets to Bulk, Best Effort, Voice."""
            router.run(f"tc qdisc change dev wan root cake {words}", env=with_plugin())
            before = [tin["sent_packets"] for tin in qdisc_json(router, "wan")["tins"]]
            host.run(cs4)
            after = [tin["sent_packets"] for tin in qdisc_json(router, "wan")["tins"]]
            added = tuple(b - a for a, b in zip(before, after))
            assert added == wanted, f"{words}: {added}"

        host.run(f"ping -c 1 {server.address}")
        expect("", 0, 5, 0)
        expect("tin voice dscp cs4", 0, 0, 5)
        expect("tin voice dscp none tin bulk dscp 32", 5, 0, 0)
        expect("tin bulk default", 0, 5, 0)


@test
def c_module_ignores_settings_of_tins():
    with module("c"), box_with_dummy() as box:
        box.run("tc qdisc add dev d0 root cake")
        before = box.run("tc -s qdisc show dev d0")
        box.run("tc qdisc change dev d0 root cake tin voice thresh 50%", env=with_plugin())
        assert box.run("tc -s qdisc show dev d0", env=with_plugin()).splitlines()[0] == before.splitlines()[0]


if __name__ == "__main__":
    main()
