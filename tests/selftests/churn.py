#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Adding, changing, deleting, links that go down, namespaces and modules that go, under traffic."""

import multiprocessing
import os
import random
import socket
import subprocess
import time

from lab import (is_loaded, kernel_log, leaks, main, module, namespaces, note, run, short, test)
from netlink_stress import some_options
from packet_stress import FRAMES
from rtnetlink import (NLM_F_CREATE, NLM_F_REPLACE, RTM_GETQDISC, RTM_GETTCLASS, Netlink)

KINDS = (b"cake", b"cake", b"cake", b"cake_mq", b"pfifo")


def send(dice, device):
    """Sends a burst on a device, if it is up."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        try:
            out.bind((device, 0))
            for _ in range(50):
                out.send(dice.choice(FRAMES) + bytes(dice.choice((0, 100, 1000))))
        except OSError:
            return 0
    return 50


def meddle(seed, name, until, slowest):
    """Does whatever comes to mind to a namespace's two devices, from one of several processes.

    No rate is below `slowest`, in bytes per second.
    """
    dice = random.Random(seed)
    done = {}
    with open(f"/run/netns/{name}", "rb") as inside:
        os.setns(inside.fileno(), os.CLONE_NEWNET)
    with Netlink() as netlink:
        indices = [socket.if_nametoindex(device) for device in ("left", "right")]
        while time.monotonic() < until:
            index = dice.choice(indices)
            what = dice.choice(("send",) * 6 + ("change",) * 4 + ("replace",) * 2
                               + ("delete", "link", "dump", "classes"))
            match what:
                case "send":
                    send(dice, dice.choice(("left", "right")))
                case "change":
                    netlink.change(index, some_options(dice, slowest), kind=dice.choice(KINDS))
                case "replace":
                    kind = dice.choice(KINDS)
                    options = [] if kind == b"pfifo" else [some_options(dice, slowest)]
                    netlink.change(index, *options, kind=kind, flags=NLM_F_CREATE | NLM_F_REPLACE)
                case "delete":
                    netlink.delete(index)
                case "link":
                    netlink.set_up(index, False)
                    netlink.set_up(index, True)
                case "dump":
                    netlink.dump(RTM_GETQDISC, index)
                case "classes":
                    netlink.dump(RTM_GETTCLASS, index)
            done[what] = done.get(what, 0) + 1
    return done


def make(name):
    """A namespace with two devices of four queues that are joined."""
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "add", "left", "numtxqueues", "4", "numrxqueues", "4", "type",
        "veth", "peer", "name", "right", "numtxqueues", "4", "numrxqueues", "4")
    for device in ("left", "right"):
        run("ip", "-n", name, "link", "set", device, "up")


def unload():
    """Unloads the module, if it is not in use; tc may have it back by then."""
    if subprocess.run(["rmmod", "sch_cake"], capture_output=True, check=False).returncode:
        return 0
    run("insmod", os.environ["CAKE_MODULE"], check=False)
    return 1


@test
def nothing_breaks_whatever_comes_and_goes():
    seconds = 15 if short() else 600
    end = time.monotonic() + seconds
    total, rounds, unloaded = {}, 0, 0
    with namespaces():
        while time.monotonic() < end:
            rounds += 1
            with module("rust"):
                make("arena")
                until = min(time.monotonic() + 5, end)
                # A queued packet keeps its sender's socket and that the namespace, so that what is
                # to go by itself must get its packets sent: at 512 bit/s that takes minutes.
                by_itself = rounds % 2 == 0
                slowest = 125000 if by_itself else 1
                with multiprocessing.Pool(3) as crowd:
                    tasks = crowd.starmap_async(
                        meddle, ((rounds * 10 + i, "arena", until, slowest) for i in range(3)),
                        chunksize=1)
                    while not tasks.ready():
                        unloaded += unload()
                        time.sleep(0.2)
                    for done in tasks.get():
                        for what, count in done.items():
                            total[what] = total.get(what, 0) + count
                # With their disciplines, and with what is queued.
                if not by_itself:
                    run("ip -n arena link del left")
                run("ip netns del arena")
    note(f"{rounds} namespaces, {unloaded} times unloaded meanwhile: {total}")
    assert total["send"] > 10 and total["replace"] > 10, total
    assert not is_loaded()


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


@test
def nothing_leaks():
    assert not leaks(), leaks()


if __name__ == "__main__":
    main()
