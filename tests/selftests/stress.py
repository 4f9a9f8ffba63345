#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Loading, unloading and reconfiguring over and over: nothing is lost and nothing breaks."""

import contextlib
import itertools

from lab import (is_loaded, kernel_log, line, main, module, namespaces, note, qdisc_json, run,
                 short, test)

MODES = [
    f"{bandwidth} {preset} {flows} {framing}"
    for bandwidth, preset, flows, framing in itertools.product(
        ("bandwidth 20mbit", "unlimited"),
        ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"),
        ("flowblind", "triple-isolate", "dual-srchost nat"),
        ("raw", "overhead 34 mpu 64", "atm"))]


def kernel_memory():
    """What the kernel has allocated for itself, in KiB."""
    run("sh", "-c", "echo 3 > /proc/sys/vm/drop_caches")
    with open("/proc/meminfo", encoding="ascii") as file:
        sizes = {name: int(rest.split()[0]) for name, rest in
                 (text.split(":") for text in file)}
    return sizes["Slab"] + sizes["VmallocUsed"] + sizes["PageTables"] + sizes["KernelStack"]


def loses_nothing(play, count, noise=1024):
    """Runs `play(count)`; fails if kernel memory has grown by more than noise.

    Caches of packets grow with traffic through any discipline: `noise` is what to expect, in KiB.
    """
    play(count // 2)
    before = kernel_memory()
    play(count)
    grown = kernel_memory() - before
    note(f"{count} times: {grown} KiB more in use")
    assert grown < noise, f"{grown} KiB more in use after {count} times"


@contextlib.contextmanager
def upload_from(host, server, *options):
    """Has a host upload meanwhile."""
    sink = server.serve()
    upload = host.start("iperf3", "-c", server.address, "-t", "600", *options)
    yield
    assert upload.poll() is None, upload.communicate()
    upload.terminate()
    upload.wait()
    sink.wait()


@test
def module_loads_and_unloads_again_and_again():
    def play(count):
        for _ in range(count):
            with module("rust"):
                pass

    loses_nothing(play, 100 if short() else 1000)
    assert not is_loaded()


@test
def instances_come_and_go_without_a_trace():
    with module("rust"), namespaces("box") as [box]:
        box.run("ip link add d0 type dummy")
        box.run("ip addr add 192.0.2.1/24 dev d0")
        box.run("ip link set d0 up")

        def play(count):
            for i in range(count):
                box.run(f"tc qdisc add dev d0 root cake {MODES[i % len(MODES)]}")
                box.run("ping -c 1 -W 0.001 192.0.2.2", check=False)
                box.run("tc qdisc del dev d0 root")

        loses_nothing(play, 100 if short() else 1000)


@test
def configuration_changes_under_traffic():
    with module("rust"), line() as (router, [host], [server]):
        def play(count):
            router.run("tc qdisc add dev wan root handle 1: cake bandwidth 20mbit")
            with upload_from(host, server, "-P", "8", "-b", "10M"):
                for i in range(count):
                    mode = MODES[i % len(MODES)]
                    router.run(f"tc qdisc replace dev wan root handle 1: cake {mode}")
                stats = qdisc_json(router, "wan")
            note(f"{stats['packets']} packets went through meanwhile")
            assert stats["packets"] > count
            router.run("tc qdisc del dev wan root")

        loses_nothing(play, 100 if short() else 1000, noise=3072)


@test
def discipline_is_replaced_under_traffic():
    with module("rust"), line() as (router, [host], [server]):
        def play(count):
            with upload_from(host, server, "-P", "8"):
                for i in range(count):
                    mode = MODES[i % len(MODES)]
                    router.run(f"tc qdisc replace dev wan root cake {mode}")
                    router.run("tc qdisc replace dev wan root pfifo limit 100")

        loses_nothing(play, 50 if short() else 200, noise=3072)


@test
def instances_take_less_memory_than_those_of_the_c_module():
    count = 40
    for words, most in (("besteffort", 126), ("diffserv3", 322), ("diffserv8", 781)):
        taken = {}
        for which in ("c", "rust"):
            with module(which), namespaces("box") as [box]:
                for i in range(count):
                    box.run(f"ip link add d{i} type dummy")
                before = kernel_memory()
                for i in range(count):
                    box.run(f"tc qdisc add dev d{i} root cake {words}")
                taken[which] = (kernel_memory() - before) / count
        note(f"{words}: C {taken['c']:.0f} KiB, Rust {taken['rust']:.0f} KiB an instance")
        assert taken["rust"] <= min(most, taken["c"]), taken


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


if __name__ == "__main__":
    main()
