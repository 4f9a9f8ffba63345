#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A video call: frames of several packets each way, and how late each whole frame arrives.

No traffic generator at hand times frames rather than packets, and it is frames that people see.
"""

import json
import socket
import struct
import sys
import time

FRAMES_A_SECOND = 30
PACKETS_A_FRAME = 5
# 5 packets of 1250 bytes, 30 times a second, are 1.5 Mbit/s.
PACKET = 1250
PORTS = (5401, 5402)
HEADER = struct.Struct("!IIQ")


class Call:
    """A call between two hosts of the laboratory, whose clocks are one."""

    def __init__(self, near, far, tos, seconds):
        self.ways = []
        for sender, receiver, port in ((near, far, PORTS[0]), (far, near, PORTS[1])):
            ear = receiver.start(sys.executable, __file__, "listen", str(port), str(seconds + 3))
            mouth = sender.start(sys.executable, __file__, "speak", receiver.address, str(port),
                                 str(tos), str(seconds))
            self.ways.append((mouth, ear))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for way in self.ways:
            for process in way:
                process.wait()

    def results(self):
        """What arrived of each way."""
        found = []
        for mouth, ear in self.ways:
            sent = int(mouth.communicate()[0])
            found.append(summary(json.loads(ear.communicate()[0]), sent))
        return found


def summary(delays, sent):
    """Figures of the delays of those frames that arrived whole."""
    ordered = sorted(delays)
    at = lambda part: ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None
    return {"frames": sent, "lost": sent - len(ordered), "median_ms": at(0.5), "p95_ms": at(0.95),
            "p99_ms": at(0.99), "max_ms": at(1)}


def speak(address, port, tos, seconds):
    """Sends frames and prints how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        out.connect((address, port))
        time.sleep(1)
        start = time.monotonic()
        for frame in range(seconds * FRAMES_A_SECOND):
            time.sleep(max(0.0, start + frame / FRAMES_A_SECOND - time.monotonic()))
            now = time.monotonic_ns()
            for packet in range(PACKETS_A_FRAME):
                try:
                    out.send(HEADER.pack(frame, packet, now) + bytes(PACKET - HEADER.size))
                except ConnectionRefusedError:
                    pass
        print(seconds * FRAMES_A_SECOND)


def listen(port, seconds):
    """Prints the delays in ms of all frames that arrived whole within a time."""
    missing, delays = {}, []
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("", port))
        while (left := end - time.monotonic()) > 0:
            ear.settimeout(left)
            try:
                frame, _, sent = HEADER.unpack_from(ear.recv(2048))
            except TimeoutError:
                break
            missing[frame] = missing.get(frame, PACKETS_A_FRAME) - 1
            if not missing[frame]:
                delays.append(round((time.monotonic_ns() - sent) / 1e6, 2))
    print(json.dumps(delays))


if __name__ == "__main__":
    if sys.argv[1] == "speak":
        speak(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        listen(*map(int, sys.argv[2:]))
