#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The shaper's rate, to a thousandth. To be run with time travel."""

import json
import sys
import time

from lab import line, main, module, note, short, test

PAYLOAD = 1400
# The IPv4 packet, and what the device counts with its Ethernet header.
PACKET = PAYLOAD + 28
FRAME = PACKET + 14

# Words for the framing, and the bytes on the link that follow from them by definition.
FRAMINGS = {
    "": FRAME,
    "overhead 34": PACKET + 34,
    "atm": -(-FRAME // 48) * 53,
    "ptm": FRAME + -(-FRAME // 64),
}
RATES = {"64kbit": 64_000, "2mbit": 2_000_000, "100mbit": 100_000_000, "1gbit": 1_000_000_000}

# Sends datagrams at a given rate, one by one: the AQM and BLUE, which such a flood excites, would
# else empty the queue between two handfuls. It keeps fifty ahead at the start.
SENDER = f"""
import socket, sys, time
address, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((address, 9000))
with open("/proc/self/timerslack_ns", "w") as slack:
    slack.write("1")
gap = {FRAME} * 8 / rate
payload = bytes({PAYLOAD})
start = time.monotonic()
sent = 0
while (passed := time.monotonic() - start) < seconds:
    due = int(passed / gap) + 50
    for _ in range(due - sent):
        out.send(payload)
    sent = due
    time.sleep(gap)
"""

# Counts datagrams and takes the kernel's time of the first and the last.
RECEIVER = """
import json, socket, struct
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
sock.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
sock.bind(("", 9000))
print("ready", flush=True)
count = first = last = 0
while True:
    sock.settimeout(3 if count else 30)
    try:
        _, extra, _, _ = sock.recvmsg(2048, 64)
    except TimeoutError:
        break
    seconds, nanoseconds = struct.unpack("qq", extra[0][2])
    last = seconds * 10**9 + nanoseconds
    first = first or last
    count += 1
print(json.dumps([count, last - first]))
"""


def be_quiet(router, host):
    """Has nothing but the test's packets on the link: neither ARP nor anything of IPv6."""
    router.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
    host.run("fping", "-c", "1", "-q", "203.0.113.2")
    for neighbour in router.run("ip -4 neigh show dev wan").splitlines():
        address, _, mac = neighbour.split()[:3]
        router.run(f"ip neigh replace {address} lladdr {mac} nud permanent dev wan")


def shaped_rate(which, rate, framing, seconds):
    """Bits per second on the link while twice the rate is offered."""
    with module(which), line() as (router, [host], [server]):
        router.run("tc", "qdisc", "add", "dev", "wan", "root", "cake", "besteffort",
                   "bandwidth", rate, *framing.split())
        be_quiet(router, host)
        receiver = server.start(sys.executable, "-c", RECEIVER)
        assert receiver.stdout.readline() == "ready\n", receiver.communicate()
        host.run(sys.executable, "-c", SENDER, server.address, str(2 * RATES[rate]), str(seconds))
        output, errors = receiver.communicate()
    assert output, errors
    count, nanoseconds = json.loads(output)
    return (count - 1) * FRAMINGS[framing] * 8 * 1e9 / nanoseconds


def check(rate):
    """Fails if our module misses the rate; notes what the C module does."""
    seconds = 60 if rate == "64kbit" else 10
    if short():
        seconds = {"100mbit": 1, "1gbit": 0.3}.get(rate, seconds)
    off = []
    for framing in FRAMINGS:
        errors = {}
        # A billion bits a second take long to make.
        for which in ("rust",) if short() or rate == "1gbit" else ("rust", "c"):
            errors[which] = shaped_rate(which, rate, framing, seconds) / RATES[rate] - 1
        note(f"{rate:7} {framing or 'plain':11} "
             + ", ".join(f"{which} {error:+.4%}" for which, error in errors.items()))
        if abs(errors["rust"]) > 0.001:
            off.append(framing or "plain")
    assert not off, f"{rate}: off by more than 0.1 %: {', '.join(off)}"


@test
def rate_of_64kbit_is_kept():
    check("64kbit")


@test
def rate_of_2mbit_is_kept():
    check("2mbit")


@test
def rate_of_100mbit_is_kept():
    check("100mbit")


@test
def rate_of_1gbit_is_kept():
    check("1gbit")


@test
def rate_is_kept_after_a_time_without_one():
    """Behind a link of 4 Mbit/s packets wait for ten seconds, unlimited; then the rate is 1 Mbit/s."""
    seen = {}
    for which in ("c", "rust"):
        with module(which), line() as (router, [host], [server]):
            router.run("tc qdisc add dev wan root handle 1: tbf rate 4mbit burst 3kb limit 1mb")
            router.run("tc qdisc add dev wan parent 1: handle 2: cake unlimited besteffort")
            sink = server.serve()
            upload = host.start("iperf3", "-c", server.address, "-t", "30", "-P", "4")
            time.sleep(10)
            router.run("tc qdisc change dev wan parent 1: handle 2: cake bandwidth 1mbit")
            before = sent(router)
            time.sleep(5)
            seen[which] = (sent(router) - before) * 8 / 5e6
            upload.terminate()
            upload.wait()
            sink.wait()
    note(f"C {seen['c']:.2f} Mbit/s, Rust {seen['rust']:.2f} Mbit/s")
    assert abs(seen["rust"] - 1) < 0.05, seen


def sent(router):
    """Bytes that cake has sent, as a child."""
    rows = json.loads(router.run("tc -s -j qdisc show dev wan"))
    return next(row["bytes"] for row in rows if row["kind"] == "cake")


if __name__ == "__main__":
    main()
