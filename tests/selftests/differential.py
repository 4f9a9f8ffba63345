#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The same traffic through the C module and through ours: the same must come out.

To be run with time travel. Each scenario is played several times on both modules. Where the C
module gives the same counts each time, ours must give those; where it does not, means must agree
within 3 %, or within twice the C module's own spread if that is larger. A table goes to the
terminal, and the figures to build/differential/report.json.
"""

import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import time

from lab import kernel_log, line, main, module, note, qdisc_json, short, test, with_plugin

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parents[1] / "build" / "differential" / "report.json"

# Sends numbered datagrams of several flows, each at its own spacing. Every 20 bytes of the payload
# say which flow and which packet of it this is, and when it was sent.
SENDER = """
import heapq, json, socket, struct, sys, time
flows = json.loads(sys.argv[1])
start = time.monotonic() + 0.1
events = []
for number, flow in enumerate(flows):
    family = socket.AF_INET6 if ":" in flow["to"] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, 67, flow["tos"])  # IPV6_TCLASS
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, flow["tos"])
    flow["sock"] = sock
    for i in range(flow["count"]):
        burst, within = divmod(i, flow["burst"])
        at = burst * flow["gap"] + within * flow["spacing"] + flow["offset"]
        events.append((start + at, number, i))
heapq.heapify(events)
while events:
    at, number, i = heapq.heappop(events)
    time.sleep(max(0, at - time.monotonic()))
    flow = flows[number]
    record = struct.pack("!4sIIQ", b"CAKE", flow["id"], i, time.monotonic_ns())
    payload = (record * (flow["size"] // len(record) + 1))[:flow["size"]]
    flow["sock"].sendto(payload, (flow["to"], flow["port"]))
"""

# Notes what arrives: for each flow packets, bytes, marks of congestion and delays.
RECEIVER = """
import json, socket, struct, time
sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
print("ready", flush=True)
flows = {}
while True:
    sock.settimeout(4 if flows else 60)
    try:
        data, address = sock.recvfrom(70000)
    except TimeoutError:
        break
    if address[2] == socket.PACKET_OUTGOING:
        continue
    place = data.find(b"CAKE")
    if place < 0:
        continue
    _, flow, number, sent = struct.unpack("!4sIIQ", data[place:place + 20])
    if data[0] >> 4 == 4:
        tos = data[1]
    else:
        tos = (data[0] & 15) << 4 | data[1] >> 4
    seen = flows.setdefault(flow, {"packets": 0, "bytes": 0, "ce": 0, "tos": 0, "delays": []})
    seen["packets"] += 1
    seen["bytes"] += len(data)
    seen["ce"] += tos & 3 == 3
    seen["tos"] |= tos & 0xfc
    seen["delays"].append(time.monotonic_ns() - sent)
print(json.dumps(flows))
"""

# The tins above Best Effort, by mode: only ours may run ahead of their thresholds.
ABOVE = {
    "besteffort": [], "precedence": [f"tin{i}" for i in range(1, 8)], "diffserv3": ["voice"],
    "diffserv4": ["video", "voice"], "diffserv8": [f"tin{i}" for i in range(3, 8)],
}

EF, CS1, AF41, CS6, ECT0 = 0xb8, 0x20, 0x88, 0xc0, 0x02


@dataclasses.dataclass
class Flow:
    """Datagrams from a host to a server: `rate` in kbit/s, or bursts of them `gap` s apart."""

    host: int = 0
    server: int = 0
    rate: int = 1000
    size: int = 1000
    tos: int = 0
    seconds: float = 4
    burst: int = 0
    gap: float = 0
    v6: bool = False


@dataclasses.dataclass
class Scenario:
    """What is configured and what is sent. TCP is given as (host, options of iperf3)."""

    words: str
    flows: list = dataclasses.field(default_factory=list)
    tcp: list = dataclasses.field(default_factory=list)
    prepare: str = ""
    # Whether the C module's own runs fall into groups, so that more of them are needed.
    falls_apart: bool = False


FOUR = [Flow(0, 0), Flow(0, 1), Flow(1, 0), Flow(1, 1)]
HOGS = [Flow(0, 0, 1500)] * 3 + [Flow(1, 1, 1500)]
CLASSES = [Flow(0, 0, 800), Flow(0, 1, 800, tos=EF), Flow(1, 0, 800, tos=CS1),
           Flow(1, 1, 800, tos=AF41), Flow(1, 0, 100, 100, tos=CS6)]
SMALL = [Flow(0, 0, 200, 60), Flow(1, 1, 3000, 1400)]

SCENARIOS = {
    **{f"mode {mode}": Scenario(f"bandwidth 3mbit besteffort {mode}", HOGS)
       for mode in ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost",
                    "dual-dsthost", "triple-isolate")},
    "classes besteffort": Scenario("bandwidth 2mbit besteffort", CLASSES),
    **{f"classes {preset}": Scenario(f"bandwidth 2mbit {preset}", CLASSES)
       for preset in ("precedence", "diffserv3", "diffserv4", "diffserv8")},
    "framing overhead": Scenario("bandwidth 2mbit besteffort overhead 44 mpu 96", SMALL),
    "framing atm": Scenario("bandwidth 2mbit besteffort overhead 32 atm", SMALL),
    "framing ptm": Scenario("bandwidth 2mbit besteffort overhead 22 ptm", SMALL),
    "framing raw": Scenario("bandwidth 2mbit besteffort", SMALL),
    "below the rate": Scenario("bandwidth 10mbit diffserv4", CLASSES),
    "unlimited": Scenario("diffserv4", CLASSES),
    "idle between bursts": Scenario("bandwidth 1mbit besteffort", [
        Flow(0, 0, 4000, burst=20, gap=0.5), Flow(1, 1, 100, 100)]),
    "ECN": Scenario("bandwidth 2mbit besteffort", [
        Flow(0, 0, 1500, tos=ECT0), Flow(1, 1, 1500)]),
    "ECN IPv6": Scenario("bandwidth 2mbit besteffort", [
        Flow(0, 0, 1500, tos=ECT0, v6=True), Flow(1, 1, 1500, v6=True)]),
    "wash": Scenario("bandwidth 2mbit diffserv4 wash", CLASSES),
    "ingress": Scenario("bandwidth 2mbit besteffort ingress", FOUR),
    "memory limit": Scenario("bandwidth 1mbit besteffort memlimit 40000", [
        Flow(0, 0, 3000), Flow(1, 1, 100, 100)]),
    "short rtt": Scenario("bandwidth 2mbit besteffort rtt 10ms", FOUR),
    "long rtt": Scenario("bandwidth 2mbit besteffort rtt 500ms", FOUR),
    "fragments": Scenario("bandwidth 2mbit besteffort", [Flow(0, 0, 2000, 4000), Flow(1, 1, 500)]),
    "fragments hosts": Scenario("bandwidth 2mbit dual-srchost", [
        Flow(0, 0, 2000, 4000), Flow(1, 1, 2000)]),
    "IPv6": Scenario("bandwidth 2mbit diffserv4", [
        dataclasses.replace(flow, v6=True) for flow in CLASSES]),
    "IPv6 and IPv4": Scenario("bandwidth 2mbit triple-isolate", [
        Flow(0, 0, 1500), Flow(1, 1, 1500, v6=True)]),
    "6in4": Scenario("bandwidth 2mbit besteffort", [
        Flow(0, 0, 1500, v6=True), Flow(1, 1, 1500, v6=True)], prepare="6in4"),
    "VLAN": Scenario("bandwidth 2mbit diffserv4", CLASSES, prepare="vlan", falls_apart=True),
    "NAT": Scenario("bandwidth 3mbit besteffort dual-srchost nat", HOGS, prepare="nat"),
    "NAT unseen": Scenario("bandwidth 3mbit besteffort dual-srchost", HOGS, prepare="nat"),
    "fwmark": Scenario("bandwidth 2mbit diffserv4 fwmark 0xf", CLASSES, prepare="mark"),
    "TCP": Scenario("bandwidth 10mbit besteffort", tcp=[(0, "")]),
    "TCP four": Scenario("bandwidth 10mbit besteffort", tcp=[(0, "-P 4")]),
    "TCP hosts": Scenario("bandwidth 10mbit dual-srchost", tcp=[(0, "-P 4"), (1, "")]),
    "TCP and games": Scenario("bandwidth 2mbit diffserv3", [Flow(1, 1, 75, 150)], [(0, "")]),
    "TCP GSO": Scenario("bandwidth 50mbit besteffort", tcp=[(0, "")], prepare="gso"),
    "TCP GSO whole": Scenario("bandwidth 50mbit besteffort no-split-gso", tcp=[(0, "")],
                              prepare="gso"),
    "download": Scenario("bandwidth 1mbit besteffort", tcp=[(0, "-R -b 20M")]),
}
# What make test plays.
SHORT = ("mode flowblind", "mode dual-srchost", "classes diffserv4", "framing atm", "ECN",
         "idle between bursts", "6in4", "IPv6", "NAT")


def gso(router, hosts, on):
    """Has large packets pass, or not."""
    state = "on" if on else "off"
    for node, device in ((hosts[0], "eth0"), (router, "l1"), (router, "wan")):
        node.run("ethtool", "-K", device, "tso", state, "gso", state, "gro", state, "tx", state)


@contextlib.contextmanager
def prepared(what, router, far, hosts):
    """Has the line prepared for a scenario, and as it was afterwards."""
    undo = []

    def both(command, inverse):
        for node, (here, there) in ((router, "12"), (far, "21")):
            for one in command if isinstance(command, tuple) else (command,):
                node.run(one.format(here=here, there=there))
            undo.append((node, inverse))

    if what == "6in4":
        both(("ip tunnel add six mode sit local 203.0.113.{here} remote 203.0.113.{there}",
              "ip link set six up", "ip -6 route add 2001:db8:{there}::/48 dev six metric 1"),
             "ip link del six")
    elif what == "vlan":
        both(("ethtool -K wan txvlan off rxvlan off",
              "ip link add link wan name wan.5 type vlan id 5", "ip link set wan.5 up",
              "ip addr add 203.0.113.1{here}/29 dev wan.5",
              "ip route replace default via 203.0.113.1{there}"),
             "ip link del wan.5")
        undo += [(router, "ip route replace default via 203.0.113.2"),
                 (far, "ip route replace default via 203.0.113.1")]
    elif what in ("nat", "mark"):
        hook = {"nat": ("type nat hook postrouting priority 100", "masquerade"),
                "mark": ("type filter hook postrouting priority -150", "meta mark set 3")}[what]
        for words in (("add", "table", "inet", "t"),
                      ("add", "chain", "inet", "t", "c", "{", *hook[0].split(), ";", "}"),
                      ("add", "rule", "inet", "t", "c", "oifname", "wan", *hook[1].split())):
            router.run("nft", " ".join(words))
        undo.append((router, "nft delete table inet t"))
    elif what == "gso":
        gso(router, hosts, True)
    yield
    for node, command in undo:
        node.run(command)
    if what == "gso":
        gso(router, hosts, False)


def events(flow, number, servers):
    """A flow as the sender wants it."""
    spacing = flow.size * 8 / flow.rate / 1000
    count = int(flow.seconds / spacing)
    if flow.burst:
        count = int(flow.seconds / flow.gap) * flow.burst
    address = f"2001:db8:2::{flow.server + 0x65:x}" if flow.v6 else servers[flow.server].address
    return {"id": number, "to": address, "port": 9000 + number, "tos": flow.tos,
            "size": flow.size, "count": count, "spacing": spacing, "burst": flow.burst or count,
            "gap": flow.gap or flow.seconds, "offset": number * 0.0007}


# What the receiver says of a flow of which nothing arrived.
NOTHING = {"packets": 0, "bytes": 0, "ce": 0, "tos": 0, "delays": [0]}


def play(which, scenario, router, far, hosts, servers):
    """Figures of one run by name."""
    with prepared(scenario.prepare, router, far, hosts):
        words = [scenario.words]
        if which == "rust":
            mode = next((mode for mode in ABOVE if mode in scenario.words), "diffserv3")
            words += [f"tin {tin} burst 0" for tin in ABOVE[mode]]
        router.run(f"tc qdisc add dev wan root handle 1: cake {' '.join(words)}", env=with_plugin())
        receivers = [server.start(sys.executable, "-c", RECEIVER) for server in servers] \
            if scenario.flows else []
        for receiver in receivers:
            assert receiver.stdout.readline() == "ready\n", receiver.communicate()
        sinks = [servers[0].serve(5201 + i) for i in range(len(scenario.tcp))]
        uploads = [hosts[host].start("iperf3", "-J", "-c", servers[0].address, "-p",
                                     str(5201 + i), "-t", "6", "-l", "4K", *options.split())
                   for i, (host, options) in enumerate(scenario.tcp)]
        flows = [events(flow, number, servers) for number, flow in enumerate(scenario.flows)]
        senders = [host.start(sys.executable, "-c", SENDER, json.dumps(
            [flow for flow, of in zip(flows, scenario.flows) if hosts[of.host] is host]))
            for host in hosts if scenario.flows]
        delays = []
        if uploads:
            time.sleep(2)
            for _ in range(8):
                time.sleep(0.5)
                delays += [tin["avg_delay_us"] / 1000
                           for tin in qdisc_json(router, "wan")["tins"] if tin["avg_delay_us"]]
        reports = [json.loads(upload.communicate()[0])["end"] for upload in uploads]
        for process in (*senders, *sinks):
            assert process.wait() == 0, process.communicate()
        seen = {}
        for receiver in receivers:
            seen.update(json.loads(receiver.communicate()[0]))
        time.sleep(1)
        stats = qdisc_json(router, "wan")
        assert (stats["qlen"], stats["backlog"]) == (0, 0), stats
        router.run("tc qdisc del dev wan root")
    figures = {}
    for flow in flows:
        got = seen.get(str(flow["id"]), NOTHING)
        waits = sorted(got["delays"])
        name = f"flow {flow['id']}"
        figures |= {f"{name} delivered": got["packets"], f"{name} bytes": got["bytes"],
                    f"{name} marked": got["ce"], f"{name} code point": got["tos"] >> 2,
                    f"{name} mean ms": statistics.mean(waits) / 1e6,
                    f"{name} p99 ms": waits[int(len(waits) * 0.99)] / 1e6}
    if flows and not uploads:
        figures |= {f"tin {i} {key}": tin[key] for i, tin in enumerate(stats["tins"])
                    for key in ("sent_packets", "drops", "ecn_mark")}
    for i, report in enumerate(reports):
        figures[f"TCP {i} Mbit/s"] = report["sum_received"]["bits_per_second"] / 1e6
    if reports:
        figures |= {"drops": stats["drops"], "sojourn ms": statistics.mean(delays or [0])}
    return figures


def tables(names, runs):
    """Figures of each scenario on each module: a list of runs."""
    results = {}
    for which in ("c", "rust"):
        with module(which), line(hosts=2, servers=2) as (router, hosts, servers):
            far = dataclasses.replace(router, name="far")
            six(router, far, hosts, servers)
            for name in names:
                # TCP is chaotic as well.
                scenario = SCENARIOS[name]
                count = runs * 2 if scenario.tcp or scenario.falls_apart else runs
                results.setdefault(name, {})[which] = [
                    play(which, scenario, router, far, hosts, servers) for _ in range(count)]
    return results


def six(router, far, hosts, servers):
    """Gives the line IPv6, with neighbours known, so that nobody has to ask on the link."""
    for node in (router, far, *hosts, *servers):
        node.run("sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0")
        node.run("sysctl -qw net.ipv6.conf.all.forwarding=1")
    for node, here, there, group in ((router, 1, 2, hosts), (far, 2, 1, servers)):
        node.run(f"ip addr add 2001:db8:f::{here}/64 dev wan nodad")
        node.run(f"ip addr add 2001:db8:{here}::1/64 dev lan nodad")
        node.run(f"ip -6 route add 2001:db8:{there}::/48 via 2001:db8:f::{there}")
        for i, host in enumerate(group):
            host.run(f"ip addr add 2001:db8:{here}::{i + 0x65:x}/64 dev eth0 nodad")
            host.run(f"ip -6 route add default via 2001:db8:{here}::1")
    # Link-local addresses are not in use at once.
    time.sleep(3)
    for host in hosts:
        for server in servers:
            host.run("fping", "-c", "1", "-q", server.address)
        for i in range(len(servers)):
            host.run("fping", "-c", "1", "-q", f"2001:db8:2::{i + 0x65:x}")
    for node in (router, far):
        for neighbour in node.run("ip neigh show dev wan").splitlines():
            words = neighbour.split()
            if "lladdr" in words:
                node.run(f"ip neigh replace {words[0]} lladdr {words[words.index('lladdr') + 1]} "
                         f"nud permanent dev wan")


def disagreements(results):
    """Figures in which ours do not agree with the C module's, as lines for people."""
    found = []
    for name, by_module in results.items():
        for figure in by_module["c"][0]:
            theirs, ours = ([run[figure] for run in by_module[which]] for which in ("c", "rust"))
            mean, spread = statistics.mean(theirs), max(theirs) - min(theirs)
            is_count = all(isinstance(value, int) for value in theirs + ours)
            if is_count and spread == 0 and len(theirs) > 1:
                agrees = set(ours) == set(theirs)
            else:
                floor = 2 if is_count else 0.05
                allowed = max(0.03 * abs(mean), 2 * spread, floor)
                agrees = abs(statistics.mean(ours) - mean) <= allowed
            if not agrees:
                found.append(f"{name}: {figure}: C {shown(theirs)}, Rust {shown(ours)}")
    return found


def shown(values):
    """A few numbers for people."""
    return " ".join(f"{value:.4g}" if isinstance(value, float) else str(value)
                    for value in values)


def summary(results):
    """One line a scenario: what came out, C beside ours."""
    rows = [f"{'scenario':22} {'':5} {'delivered':>9} {'dropped':>8} {'marked':>7} {'mean ms':>8} "
            f"{'p99 ms':>8} {'Mbit/s':>7}"]
    for name, by_module in results.items():
        for which, runs in by_module.items():
            def total(ending, fold=sum, runs=runs):
                values = [[value for figure, value in run.items() if figure.endswith(ending)]
                          for run in runs]
                values = [fold(row) for row in values if row]
                return statistics.mean(values) if values else None
            cells = [total(" delivered"), total("drops"), total(" marked"),
                     total("mean ms", statistics.mean) or total("sojourn ms", statistics.mean),
                     total("p99 ms", max), total("Mbit/s")]
            formats = ("9.0f", "8.0f", "7.0f", "8.2f", "8.2f", "7.2f")
            rows.append(f"{name if which == 'c' else '':22} {which:5} " + " ".join(
                " " * int(form.split(".")[0]) if cell is None else format(cell, form)
                for cell, form in zip(cells, formats)))
    return "\n".join(rows)


@test
def same_traffic_comes_out_the_same():
    names = SHORT if short() else SCENARIOS
    results = tables(names, 2 if short() else 5)
    found = disagreements(results)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({"runs": results, "disagreements": found}, indent=1),
                      encoding="utf-8")
    note(summary(results))
    assert not found, "\n".join(found)


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


if __name__ == "__main__":
    main()
