#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Programs other than tc that configure cake, and scripts that call tc: unchanged, beside the C
module. To be run with time travel."""

import contextlib
import pathlib
import subprocess
import time

from pyroute2 import IPRoute

from lab import is_loaded, line, main, module, namespaces, note, qdisc_json, run, test

NETWORK = """[Match]
Name=d0
[Network]
LinkLocalAddressing=no
[CAKE]
Parent=root
Handle=0x1
Bandwidth=20M
AutoRateIngress={autorate}
OverheadBytes=44
MPUBytes=84
CompensationMode={compensation}
UseRawPacketSize={raw}
FlowIsolationMode={isolation}
NAT={nat}
PriorityQueueingPreset={preset}
FirewallMark=0xff
Wash={wash}
SplitGSO={split}
RTTSec=50ms
AckFilter={filter}
"""
FIRST = {"autorate": "no", "compensation": "ptm", "raw": "no", "isolation": "dual-src-host",
         "nat": "yes", "preset": "diffserv4", "wash": "yes", "split": "no", "filter": "aggressive"}
SECOND = {"autorate": "yes", "compensation": "atm", "raw": "yes", "isolation": "hosts",
          "nat": "no", "preset": "besteffort", "wash": "no", "split": "yes", "filter": "yes"}

PYROUTE2 = [
    {"bandwidth": "20mbit", "diffserv_mode": "diffserv8", "flow_mode": "dual-dsthost"},
    {"bandwidth": "unlimited", "autorate": True, "atm_mode": True, "overhead": 44, "mpu": 96},
    {"bandwidth": 5000000, "atm_mode": "ptm", "ack_filter": "aggressive", "ingress": True},
    {"bandwidth": "1gbit", "nat": True, "rtt": "satellite", "target": 7000, "fwmark": 0x1337,
     "memlimit": 4000000, "wash": True, "split_gso": False, "ack_filter": True, "raw": False},
]


def flattened(message, path=""):
    """Netlink attributes as {path: value}."""
    found = {}
    for name, value in message.get("attrs", ()) if hasattr(message, "get") else ():
        where = f"{path}/{name}"
        nested = flattened(value, where)
        found |= nested or {where: value}
    return found


@test
def pyroute2_sets_every_option_and_reads_every_statistic():
    seen = {}
    for which in ("c", "rust"):
        with module(which), namespaces("box") as [box], box.entered(), IPRoute() as ip:
            box.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
            box.run("ip link add d0 type dummy")
            box.run("ip link set d0 up")
            index = ip.link_lookup(ifname="d0")[0]
            for number, options in enumerate(PYROUTE2):
                ip.tc("add", "cake", index, 0x10000, **options)
                [row] = [row for row in ip.get_qdiscs(index)
                         if row.get_attr("TCA_KIND") == "cake"]
                values = flattened(row)
                seen.setdefault(which, []).append(
                    {name: repr(value) for name, value in values.items()
                     if "STATS" not in name or "CAKE" in name})
                ip.tc("del", "cake", index, 0x10000)
                assert len(values) > 40, (number, values)
    for theirs, ours in zip(seen["c"], seen["rust"]):
        assert theirs == ours, {name for name in theirs | ours
                                if theirs.get(name) != ours.get(name)}
    note(f"{len(seen['rust'][0])} attributes alike")


@test
def systemd_networkd_applies_every_key():
    folder = pathlib.Path("/run/systemd/network")
    folder.mkdir(parents=True, exist_ok=True)
    run("install -d -o systemd-network -g systemd-network /run/systemd/netif "
        "/run/systemd/netif/links /run/systemd/netif/leases")
    shown = {}
    for which in ("c", "rust"):
        for keys in (FIRST, SECOND):
            with module(which), namespaces("box") as [box]:
                box.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
                box.run("ip link add d0 type dummy")
                (folder / "10-d0.network").write_text(NETWORK.format(**keys), encoding="ascii")
                # Where /sys cannot be written to networkd does not wait for udev.
                networkd = box.start(
                    "unshare", "-m", "sh", "-c",
                    "mount -o remount,ro /sys; exec /usr/lib/systemd/systemd-networkd",
                    stdout=subprocess.DEVNULL)
                time.sleep(5)
                text = box.run("tc qdisc show dev d0")
                networkd.terminate()
                errors = networkd.communicate()[1]
                assert "qdisc cake 1: root" in text, text + errors
                shown.setdefault(which, []).append(text)
    note(shown["rust"][0].strip())
    note(shown["rust"][1].strip())
    assert shown["c"] == shown["rust"], shown


# What scripts say, as facts: sqm-scripts (piece_of_cake.qos, layer_cake.qos), OpenWrt's qosify and
# cake-autorate. {wan} is the device of the uplink, {ifb} the one that ingress is sent through.
SQM_START = """
link add {ifb} type ifb
-link set dev {ifb} up
tc qdisc replace dev {ifb} root cake
link del {ifb}
link add {ifb} type ifb
-tc qdisc del dev {wan} root
tc qdisc add dev {wan} root cake bandwidth 8000kbit atm overhead 40 mpu 0 {egress}
-tc qdisc del dev {wan} handle ffff: ingress
tc qdisc add dev {wan} handle ffff: ingress
-tc qdisc del dev {ifb} root
tc qdisc add dev {ifb} root cake bandwidth 30000kbit atm overhead 40 mpu 0 {ingress}
link set dev {ifb} up
tc filter add dev {wan} parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 \
action mirred egress redirect dev {ifb}
"""
SQM_STOP = """
tc qdisc del dev {wan} ingress
tc qdisc del dev {wan} root
tc qdisc del dev {ifb} root
link set dev {ifb} down
link del {ifb}
"""
QOSIFY_START = """
-tc qdisc del dev {wan} root
tc qdisc add dev {wan} clsact
tc qdisc add dev {wan} root cake bandwidth 8mbit diffserv4 egress nat dual-srchost
link add {ifb} type ifb
tc qdisc add dev {ifb} clsact
tc qdisc add dev {ifb} root cake bandwidth 30mbit diffserv4 ingress nat dual-dsthost
link set dev {ifb} up
tc filter add dev {wan} ingress prio 5 protocol all u32 match u32 0 0 flowid 1:1 \
action mirred egress redirect dev {ifb}
"""
QOSIFY_STOP = """
tc qdisc del dev {wan} root
tc filter del dev {wan} ingress prio 5
tc qdisc del dev {wan} clsact
link del {ifb}
"""
SCRIPTS = {
    "piece_of_cake": (SQM_START, {"egress": "diffserv3 nat besteffort",
                                  "ingress": "diffserv3 nat besteffort wash"}, SQM_STOP),
    "layer_cake": (SQM_START, {"egress": "diffserv3 nat dual-srchost ack-filter",
                               "ingress": "diffserv3 nat dual-dsthost ingress"}, SQM_STOP),
    "qosify": (QOSIFY_START, {}, QOSIFY_STOP),
}


def do(router, script, **words):
    """Runs a script's commands. Those that start with - may fail."""
    for command in script.replace("\\\n", "").strip().splitlines():
        command = command.format(wan="wan", ifb="ifb4wan", **words)
        tolerant = command.startswith("-")
        command = command.lstrip("-")
        router.run(command if command.startswith("tc ") else f"ip {command}", check=not tolerant)


@contextlib.contextmanager
def transfer(host, server, *options):
    """Has a transfer go on meanwhile."""
    sink = server.serve()
    client = host.start("iperf3", "-c", server.address, "-t", "20", *options)
    time.sleep(2)
    yield
    client.terminate()
    client.wait()
    sink.wait()


def traces(router):
    """What a script could leave behind: qdiscs and devices."""
    devices = [row.split()[0] for row in router.run("ip -br link").splitlines()]
    return router.run("tc qdisc show"), devices


def shaped(which, name):
    """What a script's shapers carry, in Mbit/s up and down."""
    start, words, stop = SCRIPTS[name]
    rates = []
    with module(which), line() as (router, [host], [server]):
        before = traces(router)
        for _ in range(2):
            do(router, start, **words)
            for options, device in (((), "wan"), (("-R",), "ifb4wan")):
                with transfer(host, server, *options):
                    first = qdisc_json(router, device)["bytes"]
                    time.sleep(2)
                    # cake-autorate's command, once a second and more often.
                    rate = qdisc_json(router, device)["options"]["bandwidth"] * 8 // 1000
                    for kbit in (rate // 2, rate):
                        router.run(f"tc qdisc change root dev {device} cake bandwidth {kbit}Kbit")
                    rates.append((qdisc_json(router, device)["bytes"] - first) * 8 / 2e6)
            do(router, stop)
            assert traces(router) == before, f"{name} left something behind: {traces(router)}"
    return rates


@test
def scripts_run_unchanged_and_leave_nothing_behind():
    for name in SCRIPTS:
        theirs, ours = shaped("c", name), shaped("rust", name)
        note(f"{name:14} C {theirs}, Rust {ours}")
        for their_rate, rate in zip(theirs, ours):
            assert abs(rate / their_rate - 1) < 0.03, (name, theirs, ours)
    assert not is_loaded()


@test
def help_keeps_the_shape_that_scripts_probe():
    with module("rust"), namespaces("box") as [box]:
        box.run("ip link add d0 type dummy")
        done = subprocess.run(["nsenter", "--net=/run/netns/box", "tc", "qdisc", "add", "dev", "d0",
                               "root", "cake", "help"], capture_output=True, text=True, check=False)
        assert "Usage: ... cake" in done.stdout + done.stderr, done


if __name__ == "__main__":
    main()
