#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Requests by the ten thousand, valid and mutated, from several processes at once.

What is refused must leave the configuration as it was.
"""

import multiprocessing
import random
import socket

from lab import kernel_log, leaks, main, module, namespaces, note, short, test
from rtnetlink import (BURST, DSCP, INTERVAL, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, RATE64,
                       RESET, RTM_GETTCLASS, SHARE, TARGET, TCA_CAKE_AUTORATE, TCA_CAKE_BASE_RATE64,
                       TCA_CAKE_FWMARK, TCA_CAKE_TINS, Netlink, attribute, u32, u64)

PROCESSES = 4
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 64, 1000, 65535, 65536, 1000000, 1 << 31, (1 << 32) - 1)


def some_tins(dice):
    """TCA_CAKE_TINS with settings of some tins."""
    tins = []
    for number in dice.sample(range(0, 10), dice.randrange(4)):
        settings = []
        for kind in dice.sample(range(0, 10), dice.randrange(4)):
            value = dice.choice(NUMBERS)
            if kind in (RATE64, DSCP):
                settings.append(u64(kind, value << dice.randrange(32)))
            elif kind in (SHARE, TARGET, INTERVAL, BURST):
                settings.append(u32(kind, value))
            elif kind == RESET:
                settings.append(attribute(kind))
        tins.append(attribute(number, *settings))
    return attribute(TCA_CAKE_TINS, *tins)


def some_options(dice, slowest=1):
    """Options, most of them valid; bandwidths are unlimited or at least `slowest` bytes/s."""
    options = []
    for kind in dice.sample(range(2, TCA_CAKE_FWMARK + 1), dice.randrange(6)):
        if kind == TCA_CAKE_AUTORATE and slowest > 1:
            continue
        if kind == TCA_CAKE_BASE_RATE64:
            options.append(u64(kind, dice.choice((
                0, slowest, max(slowest, 64), 125000, 1 << 30, (1 << 64) - 1))))
        else:
            options.append(u32(kind, dice.choice(NUMBERS[:6] if dice.random() < 0.8 else NUMBERS)))
    if dice.random() < 0.4:
        options.append(some_tins(dice))
    return b"".join(options)


def mutated(dice, data):
    """The bytes with some of them changed, cut out, doubled or put in."""
    data = bytearray(data)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << dice.randrange(8)
            case 1 if at < len(data):
                data[at] = dice.choice((0, 1, 3, 4, 5, 127, 128, 255))
            case 2:
                del data[at:at + dice.randrange(1, 9)]
            case 3:
                data[at:at] = data[at:at + dice.randrange(1, 17)]
            case 4:
                data[at:at] = dice.randbytes(dice.randrange(1, 9))
    return bytes(data)


def pester(seed, count):
    """Sends requests about a device of this process's own, and one of everybody's."""
    dice = random.Random(seed)
    refused = wrong = 0
    own, common = (socket.if_nametoindex(name) for name in (f"d{seed}", "common"))
    with Netlink() as netlink:
        netlink.change(own, flags=NLM_F_CREATE | NLM_F_REPLACE)
        before = netlink.options(own)
        for number in range(count):
            options = some_options(dice)
            if dice.random() < 0.5:
                options = mutated(dice, options)
            if number % 4 == 0:
                netlink.change(common, options, flags=NLM_F_CREATE | NLM_F_REPLACE)
            elif number % 101 == 0:
                netlink.dump(RTM_GETTCLASS, own)
                netlink.delete(own)
                error, _ = netlink.change(own, options, flags=NLM_F_CREATE | NLM_F_EXCL)
                if error:
                    refused += 1
                    wrong += netlink.options(own) is not None
                    netlink.change(own, flags=NLM_F_CREATE | NLM_F_REPLACE)
                before = netlink.options(own)
            else:
                error, _ = netlink.change(own, options)
                after = netlink.options(own)
                if error:
                    refused += 1
                    wrong += after != before
                before = after
    return refused, wrong


@test
def refused_requests_change_nothing():
    count = (4_000 if short() else 100_000) // PROCESSES
    with module("rust"), namespaces("box") as [box]:
        box.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        for name in ["common", *(f"d{i}" for i in range(PROCESSES))]:
            box.run(f"ip link add {name} type dummy")
            box.run(f"ip link set {name} up")
        with box.entered():
            with multiprocessing.Pool(PROCESSES) as crowd:
                found = crowd.starmap(pester, ((i, count) for i in range(PROCESSES)), chunksize=1)
    refused = sum(one for one, _ in found)
    wrong = sum(one for _, one in found)
    note(f"{count * PROCESSES} requests, {refused} refused, {wrong} of these changed something")
    assert count * PROCESSES / 10 < refused < count * PROCESSES * 0.9, refused
    assert wrong == 0, wrong


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


@test
def nothing_leaks():
    assert not leaks(), leaks()


if __name__ == "__main__":
    main()
