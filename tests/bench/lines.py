# SPDX-License-Identifier: GPL-2.0
"""What a packet costs: pktgen through a qdisc on a device that drops everything.

The figure is pktgen's own, in ns per packet. With QEMU's -icount a ns of the guest is an instruction.
"""

import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "selftests"))

from lab import run  # noqa: E402 pylint: disable=wrong-import-position

PKTGEN = pathlib.Path("/proc/net/pktgen")
RESULT = re.compile(r"Result: OK: (\d+)\(")


def write(file, text):
    """Gives pktgen a command."""
    (PKTGEN / file).write_text(text + "\n", encoding="utf-8")


def prepare():
    """Makes the device, d0, and pktgen's thread for it."""
    run("modprobe", "-a", "pktgen", "dummy")
    run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
    run("ip", "link", "add", "d0", "type", "dummy")
    run("ip", "link", "set", "d0", "up")
    write("kpktgend_0", "rem_device_all")
    write("kpktgend_0", "add_device d0")


def send(count, **options):
    """Sends `count` packets, from 100 ports to 32 addresses unless told otherwise: ns for each."""
    settings = {
        "count": count, "pkt_size": 1500, "delay": 0, "burst": 1, "xmit_mode": "queue_xmit",
        "src_min": "192.0.2.1", "src_max": "192.0.2.1", "dst_min": "198.51.100.1",
        "dst_max": "198.51.100.32", "udp_src_min": 1000, "udp_src_max": 1099, "udp_dst_min": 9,
        "udp_dst_max": 9, **options}
    for key, value in settings.items():
        write("d0", f"{key} {value}")
    write("pgctrl", "start")
    text = (PKTGEN / "d0").read_text(encoding="utf-8")
    found = RESULT.search(text)
    if not found:
        raise RuntimeError(text)
    return int(found[1]) * 1000 / count


def cost(qdisc, count, **options):
    """ns for each packet through `qdisc`; nothing is no qdisc at all."""
    run("tc", *f"qdisc replace dev d0 {qdisc or 'root noqueue'}".split())
    try:
        send(count // 10, **options)
        return send(count, **options)
    finally:
        run("tc", "qdisc", "del", "dev", "d0", "root")


def ratio(base, theirs, ours):
    """Ours to theirs, net of what is there without either."""
    medians = [statistics.median(values) for values in (base, theirs, ours)]
    return (medians[2] - medians[0]) / (medians[1] - medians[0])
