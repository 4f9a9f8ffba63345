#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The module loads, shapes, shows what it did and unloads."""

import json

from lab import kernel_log, line, main, module, note, qdisc_json, run, test


@test
def traffic_goes_through_and_is_counted():
    with module("rust"), line() as (router, [host], [server]):
        router.run("tc qdisc add dev wan root cake bandwidth 20mbit")
        host.run(f"ping -c 3 -i 0.05 {server.address}")
        sink = server.serve()
        report = json.loads(host.run(f"iperf3 -J -t 2 -c {server.address}"))
        sink.wait()
        mbit = report["end"]["sum_received"]["bits_per_second"] / 1e6
        stats = qdisc_json(router, "wan")
        note(f"{mbit:.1f} Mbit/s, {stats['packets']} packets, {stats['drops']} dropped")
        assert 10 < mbit < 20, f"{mbit} Mbit/s"
        assert stats["packets"] > 1000
        assert sum(tin["sent_packets"] for tin in stats["tins"]) == stats["packets"] + stats["drops"]
        assert stats["backlog"] == 0 and stats["qlen"] == 0
        router.run("tc qdisc change dev wan root cake bandwidth 10mbit diffserv8")
        router.run("tc qdisc del dev wan root")


@test
def kernel_log_is_clean():
    assert not kernel_log(), kernel_log()


@test
def module_is_gone_afterwards():
    assert "sch_cake" not in run("cat /proc/modules")


if __name__ == "__main__":
    main()
