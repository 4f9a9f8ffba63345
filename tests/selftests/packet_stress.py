#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Malformed packets by the hundred thousand: forwarded or dropped, and nothing else happens."""

import random
import socket
import struct
import time

from lab import kernel_log, leaks, main, module, namespaces, note, qdisc_json, short, test
from netlink_stress import mutated

SOL_PACKET, PACKET_VNET_HDR = 263, 15
ETHER = bytes.fromhex("020000000002020000000001")
V4 = struct.pack("!BBHHHBBH4s4s", 0x45, 0xb8, 40, 1, 0, 64, 6, 0, socket.inet_aton("192.0.2.1"),
                 socket.inet_aton("198.51.100.1"))
V6 = (struct.pack("!IHBB", 0x6b800000, 20, 6, 64) + socket.inet_pton(socket.AF_INET6, "2001:db8::1")
      + socket.inet_pton(socket.AF_INET6, "2001:db8::2"))
TCP = struct.pack("!HHIIBBHHH", 40000, 443, 1, 1000, 0x80, 0x10, 1000, 0, 0)
OPTIONS = bytes.fromhex("0101080a00000001000000ff")
SACK = bytes.fromhex("0101050a00000bb800000fa0")
UDP = struct.pack("!HHHH", 40000, 53, 8, 0)
FRAMES = [ETHER + frame for frame in (
    b"\x08\x00" + V4 + TCP + OPTIONS, b"\x08\x00" + V4 + TCP + SACK,
    b"\x08\x00" + V4[:9] + b"\x11" + V4[10:] + UDP + bytes(100),
    # Options, a fragment, 6in4 and 4in4.
    b"\x08\x00\x4f" + V4[1:] + bytes(40) + TCP, b"\x08\x00" + V4[:6] + b"\x20\x10" + V4[8:] + TCP,
    b"\x08\x00" + V4[:9] + b"\x29" + V4[10:] + V6 + TCP + OPTIONS,
    b"\x08\x00\x47" + V4[1:9] + b"\x29" + V4[10:] + bytes(8) + V6 + TCP + OPTIONS,
    b"\x08\x00" + V4[:9] + b"\x04" + V4[10:] + V4 + TCP,
    # IPv6: plain, with extension headers, a fragment.
    b"\x86\xdd" + V6 + TCP + OPTIONS, b"\x86\xdd" + V6[:6] + b"\x00" + V6[7:] + b"\x06\x00" + bytes(6) + TCP,
    b"\x86\xdd" + V6[:6] + b"\x2c" + V6[7:] + b"\x06\x00\x00\x09" + bytes(4) + TCP,
    # Tags, ARP, MPLS, PPPoE, GRE.
    b"\x81\x00\x00\x05\x08\x00" + V4 + TCP, b"\x88\xa8\x00\x07\x81\x00\x00\x05\x86\xdd" + V6 + TCP,
    b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01" + bytes(20), b"\x88\x47\x00\x01\x01\x40" + V4 + TCP,
    b"\x88\x64\x11\x00\x00\x01\x00\x2a\x00\x21" + V4 + TCP,
    b"\x08\x00" + V4[:9] + b"\x2f" + V4[10:] + b"\x20\x00\x08\x00\x00\x00\x00\x07" + V4 + TCP)]
MODES = ["unlimited diffserv4 triple-isolate ack-filter-aggressive",
         "bandwidth 100mbit diffserv8 wash ack-filter", "bandwidth 1mbit memlimit 100kb nat dual-srchost",
         "bandwidth 50mbit besteffort flowblind", "unlimited precedence hosts ptm overhead -40",
         "bandwidth 200mbit no-split-gso ingress autorate-ingress diffserv3 fwmark 0xffffffff"]


def header(dice):
    """A virtio_net_hdr: how the packet is to be segmented and checksummed, not always sensibly."""
    kind = dice.choice((0, 0, 0, 1, 3, 4, 5, 0x81, dice.randrange(256)))
    return struct.pack("=BBHHHH", dice.choice((0, 0, 1, 2)), kind, dice.choice((54, 66, 34)),
                       dice.choice((1, 100, 536, 1448, dice.randrange(65536))),
                       dice.choice((34, 54, dice.randrange(200))), dice.choice((6, 16)))


def send(dice, device, count):
    """Sends that many frames and returns how many the kernel took."""
    taken = 0
    with (socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as plain,
          socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as segmented):
        segmented.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        for out in (plain, segmented):
            out.bind((device, 0))
        for _ in range(count):
            frame = dice.choice(FRAMES) + bytes(dice.choice((0, 0, 1, 46, 1000)))
            if dice.random() < 0.9:
                frame = mutated(dice, frame)
            try:
                if dice.random() < 0.2:
                    segmented.send(header(dice) + frame + bytes(dice.choice((0, 3000))))
                else:
                    plain.send(frame)
                taken += 1
            except OSError:
                pass
    return taken


@test
def malformed_packets_do_no_harm():
    count = 20_000 if short() else 1_000_000
    dice = random.Random(1)
    with module("rust"), namespaces("box") as [box]:
        box.run("ip link add d0 type dummy")
        box.run("ip link set d0 up")
        box.run("ethtool -K d0 tso off gso off", check=False)
        sent = 0
        with box.entered():
            for mode in MODES * 2:
                box.run(f"tc qdisc replace dev d0 root handle 1: cake {mode}")
                sent += send(dice, "d0", count // len(MODES) // 2)
            box.run("tc qdisc replace dev d0 root handle 1: cake unlimited")
            time.sleep(0.5)
        stats = qdisc_json(box, "d0")
        box.run("tc -s class show dev d0")
    note(f"{count} made, {sent} taken, {stats['packets']} sent, {stats['drops']} dropped")
    assert (stats["qlen"], stats["backlog"]) == (0, 0), stats
    assert sent > count / 2 and stats["packets"] > sent / 3, (sent, stats)


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


@test
def nothing_leaks():
    assert not leaks(), leaks()


if __name__ == "__main__":
    main()
