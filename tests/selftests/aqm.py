#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the AQM does to TCP uploads, against the C module. To be run with time travel."""

import json
import statistics
import time

from lab import line, main, module, note, qdisc_json, short, test

SETTLED = 5


def upload(which, rate, streams):
    """Mean sojourn in ms, Mbit/s that arrived and packets dropped or marked, of one run."""
    seconds = 30
    with module(which), line() as (router, [host], [server]):
        router.run(f"tc qdisc add dev wan root cake bandwidth {rate} besteffort")
        host.run("fping", "-c", "1", "-q", server.address)
        sink = server.serve()
        client = host.start("iperf3", "-J", "-c", server.address, "-t", str(seconds),
                            "-O", str(SETTLED), "-P", str(streams))
        time.sleep(SETTLED)
        delays = []
        for _ in range((seconds - 1) * 2):
            time.sleep(0.5)
            delays.append(qdisc_json(router, "wan")["tins"][0]["avg_delay_us"] / 1000)
        report = json.loads(client.communicate()[0])
        sink.wait()
        [tin] = qdisc_json(router, "wan")["tins"]
    mbit = report["end"]["sum_received"]["bits_per_second"] / 1e6
    return statistics.mean(delays), mbit, tin["drops"] + tin["ecn_mark"]


def check(rate, streams):
    """Fails if ours queues longer, carries less or drops more than the C module."""
    runs = 2 if short() else 5
    means = {}
    for which in ("c", "rust"):
        columns = list(zip(*(upload(which, rate, streams) for _ in range(runs))))
        means[which] = [statistics.mean(column) for column in columns]
        delay, mbit, drops = means[which]
        spread = statistics.pstdev(columns[2])
        note(f"{rate} {streams} up  {which:4} sojourn {delay:5.2f} ms, {mbit:6.3f} Mbit/s, "
             f"{drops:5.0f} ± {spread:.0f} drops")
    (delay, mbit, drops), (their_delay, their_mbit, their_drops) = means["rust"], means["c"]
    assert abs(delay / their_delay - 1) <= 0.15, f"sojourn {delay} ms, C {their_delay} ms"
    assert mbit >= 0.99 * their_mbit, f"{mbit} Mbit/s, C {their_mbit}"
    assert drops <= 1.2 * their_drops, f"{drops} drops, C {their_drops}"


@test
def one_upload_at_2mbit():
    check("2mbit", 1)


@test
def four_uploads_at_2mbit():
    check("2mbit", 4)


@test
def one_upload_at_50mbit():
    check("50mbit", 1)


@test
def four_uploads_at_50mbit():
    check("50mbit", 4)


if __name__ == "__main__":
    main()
