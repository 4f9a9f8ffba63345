#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What tc shows of a configuration, against the C module: byte for byte."""

import contextlib
import errno

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from lab import main, module, namespaces, test

PRESETS = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
RATES = ("64kbit", "10mbit", "10gbit")
TIN_MODES = [*PRESETS] + [
    f"bandwidth {rate} {preset}" for rate in RATES for preset in PRESETS]

# Every keyword of man tc-cake.
KEYWORDS = [
    "bandwidth 5mbit", "unlimited", "autorate-ingress", "bandwidth 5mbit autorate-ingress",
    "raw", "conservative", "noatm", "atm", "ptm", "overhead 18", "overhead -4", "mpu 84",
    "overhead 44 mpu 96 atm", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap",
    "bridged-vcmux", "bridged-llcsnap", "ipoa-vcmux", "ipoa-llcsnap", "pppoe-ptm", "bridged-ptm",
    "via-ethernet", "docsis", "ethernet", "ether-vlan", "ether-vlan ether-vlan",
    "rtt 50ms", "datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite",
    "interplanetary", "rtt 1us", "bandwidth 1mbit interplanetary",
    "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
    "triple-isolate", "nat", "nonat", "dual-srchost nat", *PRESETS,
    "fwmark 0xff00", "wash", "nowash", "split-gso", "no-split-gso", "ack-filter",
    "ack-filter-aggressive", "no-ack-filter", "ingress", "egress", "memlimit 8mb",
    "bandwidth 1gbit memlimit 1mb", "bandwidth 100mbit rtt 1s",
]

# Changes of one instance, one after the other: what a change leaves alone must stay.
CHANGES = [
    "bandwidth 20mbit diffserv4 nat", "overhead 34", "raw", "besteffort", "diffserv8 wash",
    "bandwidth 1mbit", "unlimited", "rtt 20ms", "memlimit 4mb", "fwmark 0x3", "nonat nowash",
    "atm", "overhead 10 mpu 64", "noatm", "ingress", "egress", "dual-dsthost", "diffserv3",
]


def shown(host):
    """All that tc shows of an instance, in text and in JSON."""
    commands = ("tc qdisc show dev d0", "tc -s qdisc show dev d0", "tc -s -j qdisc show dev d0",
                "tc class show dev d0")
    return "".join(host.run(command) for command in commands)


@contextlib.contextmanager
def box_with_dummy():
    """A namespace with a device, d0, that nothing is sent on."""
    with namespaces("box") as [box]:
        box.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        box.run("ip link add d0 type dummy")
        box.run("ip link set d0 up")
        yield box


def added(which, wordings):
    """What one module shows of a new instance for each of the wordings."""
    with module(which), box_with_dummy() as box:
        texts = {}
        for words in wordings:
            box.run(f"tc qdisc add dev d0 root handle 1: cake {words}")
            texts[words] = shown(box)
            box.run("tc qdisc del dev d0 root")
        return texts


def changed(which, wordings):
    """What one module shows as one instance is changed by each of the wordings."""
    with module(which), box_with_dummy() as box:
        box.run("tc qdisc add dev d0 root handle 1: cake")
        texts = {}
        for words in wordings:
            box.run(f"tc qdisc change dev d0 root cake {words}")
            texts[words] = shown(box)
        return texts


def compare(wordings, texts_of):
    """Fails if the two modules show anything different."""
    theirs, ours = texts_of("c", wordings), texts_of("rust", wordings)
    assert len(theirs) == len(set(wordings)) == len(ours)
    for words, text in theirs.items():
        for left, right in zip(text.splitlines(), ours[words].splitlines()):
            assert left == right, f"cake {words}:\nC:    {left}\nRust: {right}"
        assert text == ours[words], f"cake {words}: one shows more than the other"


@test
def every_preset_at_every_rate_reads_as_with_the_c_module():
    compare(TIN_MODES, added)


@test
def every_keyword_reads_as_with_the_c_module():
    compare(KEYWORDS, added)


@test
def changes_leave_the_rest_alone_as_with_the_c_module():
    compare(CHANGES, changed)


@test
def seed_shows_its_thresholds_targets_and_intervals():
    seed = "bandwidth 1969230bit overhead 34 dual-srchost diffserv3"
    text = added("rust", [seed])[seed]
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}
    assert rows["thresh"] == ["123072bit", "1969Kbit", "492304bit"], rows["thresh"]
    assert rows["target"] == ["148ms", "9.22ms", "36.9ms"], rows["target"]
    assert rows["interval"] == ["295ms", "104ms", "132ms"], rows["interval"]


@test
def bad_options_are_refused_whole_and_explained():
    with module("rust"), box_with_dummy() as box, box.entered(), IPRoute(ext_ack=True) as ip:
        box.run("tc qdisc add dev d0 root handle 1: cake bandwidth 3mbit diffserv4")
        before = shown(box)
        index = ip.link_lookup(ifname="d0")[0]
        for attribute, value, errno_wanted in (
                ("DIFFSERV_MODE", 5, errno.EINVAL), ("ATM", 3, errno.EINVAL),
                ("ACK_FILTER", 3, errno.EINVAL), ("FLOW_MODE", 8, errno.EINVAL),
                ("OVERHEAD", 40000, errno.ERANGE), ("MPU", 65536, errno.ERANGE)):
            name = f"TCA_CAKE_{attribute}"
            request = tcmsg()
            request["index"], request["handle"], request["parent"] = index, 0x10000, TC_H_ROOT
            request["attrs"] = [
                ["TCA_KIND", "cake"],
                ["TCA_OPTIONS", {"attrs": [["TCA_CAKE_BASE_RATE64", 1000], [name, value]]}]]
            try:
                ip.nlm_request(request, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK)
            except NetlinkError as error:
                assert error.code == errno_wanted, f"{name} {value}: {error}"
                assert name in str(error), f"{name} {value}: {error}"
            else:
                raise AssertionError(f"{name} {value} was accepted")
            assert shown(box) == before, f"{name} {value} changed something"


@test
def instance_that_cannot_be_made_leaves_nothing():
    with module("rust"), box_with_dummy() as box, box.entered(), IPRoute(ext_ack=True) as ip:
        index = ip.link_lookup(ifname="d0")[0]
        before = box.run("tc qdisc show dev d0")
        for _ in range(100):
            request = tcmsg()
            request["index"], request["handle"], request["parent"] = index, 0x10000, TC_H_ROOT
            request["attrs"] = [["TCA_KIND", "cake"],
                                ["TCA_OPTIONS", {"attrs": [["TCA_CAKE_ATM", 3]]}]]
            try:
                ip.nlm_request(request, RTM_NEWQDISC,
                               NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
            except NetlinkError as error:
                assert error.code == errno.EINVAL, error
            else:
                raise AssertionError("it was made")
        assert box.run("tc qdisc show dev d0") == before


if __name__ == "__main__":
    main()
