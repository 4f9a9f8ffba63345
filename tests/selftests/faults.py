#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Each memory allocation of init, change and dump fails once, one after the other.

Needs a kernel with fault injection: scripts/uml.sh --debug.
"""

import contextlib
import errno
import os
import pathlib
import socket
import threading

from lab import Skip, kernel_log, leaks, main, module, namespaces, note, short, test
from rtnetlink import (NLM_F_CREATE, NLM_F_EXCL, RTM_GETQDISC, RTM_GETTCLASS, TARGET,
                       TCA_CAKE_BASE_RATE64, TCA_CAKE_DIFFSERV_MODE, Netlink, tin, u32, u64)

DEBUGFS = pathlib.Path("/sys/kernel/debug")
DIFFSERV8, BESTEFFORT = 2, 3
# More allocations than any request makes.
MOST = 2000


def prepare():
    """Has allocations of all kinds fail, and no word of each in the log."""
    if not (DEBUGFS / "failslab").exists():
        raise Skip("this kernel injects no faults")
    for kind, settings in (("failslab", {"ignore-gfp-wait": "N", "verbose": "0"}),
                           ("fail_page_alloc", {"ignore-gfp-wait": "N", "ignore-gfp-highmem": "N",
                                                "min-order": "0", "verbose": "0"})):
        for name, value in settings.items():
            (DEBUGFS / kind / name).write_text(value, encoding="ascii")


@contextlib.contextmanager
def fails_at(number):
    """Has the allocation of that number fail; yields a function that tells whether it was met."""
    path = f"/proc/self/task/{threading.get_native_id()}/fail-nth"
    with open(path, "r+b", buffering=0) as file:
        left = [b"0"]

        def is_met():
            return int(left[0]) == 0

        os.pwrite(file.fileno(), str(number).encode(), 0)
        try:
            yield is_met
        finally:
            left[0] = os.pread(file.fileno(), 16, 0).strip(b"\0\n ")
            os.pwrite(file.fileno(), b"0", 0)


def fail_each(act, state, undo=lambda: None):
    """Has each allocation of `act` fail, until it makes no more of them; returns how many.

    `act` returns an errno. After one `state()` must be what it was; if only the answer was lost it
    may also be what it is after a success, and then `undo` is called.
    """
    before = state()
    assert act() == 0
    after = state()
    undo()
    for number in range(1, MOST):
        # Debugging allocates now and then, too, so that one number is not always the same place.
        tries = [fail_one(number, act, state, undo, before, after)
                 for _ in range(2 if short() else 10)]
        if not any(tries):
            return number - 1
    raise AssertionError("there is no end of allocations")


def fail_one(number, act, state, undo, before, after):
    """Has one allocation fail; returns whether there was one of that number."""
    is_answered = True
    with fails_at(number) as is_met:
        try:
            error = act()
        except OSError as failure:
            is_answered, error = False, failure.errno
    assert is_met() or error == 0, f"fails by itself: {os.strerror(error)}"
    assert error in (0, errno.ENOMEM, errno.ENOBUFS, errno.EMSGSIZE), os.strerror(error)
    now = state()
    if error and is_answered:
        assert now == before, f"allocation {number}: {os.strerror(error)}, and a change"
    assert now in (before, after), f"allocation {number}: half a change"
    if now != before:
        undo()
    return is_met()


@contextlib.contextmanager
def device():
    """A device with four queues in a namespace of its own: its number and a socket."""
    prepare()
    with module("rust"), namespaces("box") as [box]:
        box.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        box.run("ip link add d0 numtxqueues 4 type dummy")
        box.run("ip link set d0 up")
        with box.entered(), Netlink() as netlink:
            netlink.socket.settimeout(10)
            yield netlink, socket.if_nametoindex("d0")


@test
def init_fails_without_a_trace():
    with device() as (netlink, index):
        for kind, mode in ((b"cake", BESTEFFORT), (b"cake", DIFFSERV8), (b"cake_mq", BESTEFFORT)):
            if short() and (kind, mode) == (b"cake", DIFFSERV8):
                continue

            def add():
                return netlink.change(index, u32(TCA_CAKE_DIFFSERV_MODE, mode), kind=kind,
                                      flags=NLM_F_CREATE | NLM_F_EXCL)[0]

            count = fail_each(add, lambda: netlink.options(index), lambda: netlink.delete(index))
            note(f"{kind.decode()} mode {mode}: {count} allocations")
            assert count > 4, count


@test
def change_fails_as_a_whole():
    with device() as (netlink, index):
        for kind in (b"cake", b"cake_mq"):
            netlink.change(index, u32(TCA_CAKE_DIFFSERV_MODE, BESTEFFORT), kind=kind,
                           flags=NLM_F_CREATE | NLM_F_EXCL)

            def change():
                return netlink.change(
                    index, u32(TCA_CAKE_DIFFSERV_MODE, DIFFSERV8), u64(TCA_CAKE_BASE_RATE64, 125000),
                    tin(1, u32(TARGET, 5000)), kind=kind)[0]

            def change_back():
                assert netlink.change(index, u32(TCA_CAKE_DIFFSERV_MODE, BESTEFFORT),
                                      u64(TCA_CAKE_BASE_RATE64, 0), kind=kind)[0] == 0

            count = fail_each(change, lambda: netlink.options(index), change_back)
            note(f"{kind.decode()}: {count} allocations")
            assert count > 2, count
            netlink.delete(index)


@test
def dumps_fail_and_come_again():
    with device() as (netlink, index):
        netlink.change(index, u32(TCA_CAKE_DIFFSERV_MODE, DIFFSERV8), flags=NLM_F_CREATE | NLM_F_EXCL)
        for kind in (RTM_GETQDISC, RTM_GETTCLASS):

            def dump():
                return -min(netlink.dump(kind, index), 0)

            count = fail_each(dump, lambda: netlink.options(index))
            note(f"dump of type {kind}: {count} allocations")


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


@test
def nothing_leaks():
    assert not leaks(), leaks()


if __name__ == "__main__":
    main()
