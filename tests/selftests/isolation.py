#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Who gets how much of 20 Mbit/s. To be run with time travel.

In each case host A has eight uploads or downloads and host B one, over a link that runs our module
and, for comparison, the C module.
"""

import json

from lab import line, main, module, note, short, test

RATE = "20mbit"
MANY = 8
TOLERANCE = 2.0


def translate(router):
    """Has the router hide the hosts behind its own address."""
    for words in ("add table ip nat",
                  "add chain ip nat post { type nat hook postrouting priority 100 ; }",
                  "add rule ip nat post oifname wan masquerade"):
        router.run("nft", words)


def shares(which, mode, flows, ecn=False, nat=False, filters=()):
    """Percentages of what arrived. `flows` holds (host, server, parallel streams) by number."""
    seconds = 10 if short() else 20
    with module(which), line(hosts=2, servers=2) as (router, hosts, servers):
        router.run(f"tc qdisc add dev wan root handle 1: cake bandwidth {RATE} besteffort {mode}")
        for rule in filters:
            router.run(f"tc filter add dev wan parent 1: protocol ip prio 1 {rule}")
        if nat:
            translate(router)
        for node in (*hosts, *servers):
            node.run(f"sysctl -qw net.ipv4.tcp_ecn={int(ecn)}")
        for host in hosts:
            for server in servers:
                host.run("fping", "-c", "1", "-q", server.address)
        sinks = [servers[server].serve(5201 + i) for i, (_, server, _) in enumerate(flows)]
        uploads = [
            hosts[host].start("iperf3", "-J", "-c", servers[server].address, "-p", str(5201 + i),
                              "-t", str(seconds), "-O", "2", "-l", "2K", "-P", str(streams))
            for i, (host, server, streams) in enumerate(flows)]
        reports = [json.loads(upload.communicate()[0])["end"] for upload in uploads]
        for sink in sinks:
            sink.wait()
    streams = [[stream["receiver"]["bytes"] for stream in report["streams"]] for report in reports]
    total = sum(map(sum, streams))
    return [[100 * count / total for count in group] for group in streams]


def check(mode, flows, wanted, **options):
    """Fails unless the groups of flows share the link as wanted, in percent."""
    for which in ("c", "rust"):
        seen = [sum(group) for group in shares(which, mode, flows, **options)]
        note(f"{mode:18} {which:4} " + " : ".join(f"{share:.1f} %" for share in seen))
    for share, want in zip(seen, wanted):
        assert abs(share - want) <= TOLERANCE, f"{mode}: {seen}, wanted {wanted}"


@test
def dual_srchost_halves_between_sources_of_one_destination():
    check("dual-srchost", [(0, 0, MANY), (1, 0, 1)], [50, 50])


@test
def dual_srchost_halves_between_sources_of_two_destinations():
    check("dual-srchost", [(0, 0, MANY), (1, 1, 1)], [50, 50])


@test
def dual_dsthost_halves_between_destinations_of_one_source():
    check("dual-dsthost", [(0, 0, MANY), (0, 1, 1)], [50, 50])


@test
def dual_dsthost_halves_between_destinations_of_two_sources():
    check("dual-dsthost", [(0, 0, MANY), (1, 1, 1)], [50, 50])


@test
def triple_isolate_halves_if_both_ends_differ():
    check("triple-isolate", [(0, 0, MANY), (1, 1, 1)], [50, 50])


@test
def triple_isolate_shares_by_flow_if_an_end_is_the_same():
    check("triple-isolate", [(0, 0, MANY), (1, 0, 1)], [100 * MANY / (MANY + 1), 100 / (MANY + 1)])


@test
def nat_looks_behind_the_translator():
    flows = [(0, 0, MANY), (1, 0, 1)]
    check("dual-srchost nonat", flows, [100 * MANY / (MANY + 1), 100 / (MANY + 1)], nat=True)
    check("dual-srchost nat", flows, [50, 50], nat=True)


@test
def filters_say_whose_flows_they_are():
    flows = [(0, 0, 1), (0, 0, 1), (0, 0, 1)]
    rules = [f"u32 match ip dport {5201 + i} 0xffff classid {host}:0"
             for i, host in enumerate((2, 3, 3))]
    check("dual-srchost", flows, [100 / 3] * 3)
    check("dual-srchost", flows, [50, 25, 25], filters=rules)


def deviations(which, ecn):
    """How far each of nine flows is from the mean, as fractions of it, the furthest last."""
    [group, [single]] = shares(which, "flows", [(0, 0, MANY), (1, 0, 1)], ecn)
    seen = [*group, single]
    mean = sum(seen) / len(seen)
    result = sorted(abs(share / mean - 1) for share in seen)
    note(f"flows              {which:4} {'ECN' if ecn else 'drops':5} off the mean: "
         f"{sum(result) / len(result):.2%} on average, {result[-1]:.2%} at most")
    return result


@test
def flows_mode_treats_flows_alike():
    _, ours = deviations("c", True), deviations("rust", True)
    assert ours[-1] <= 0.03, ours


@test
def flows_mode_treats_flows_alike_that_lose_packets():
    # A flow that has lost a packet may leave some of its share to the others for a while.
    _, ours = deviations("c", False), deviations("rust", False)
    assert sum(ours) / len(ours) <= 0.03, ours


if __name__ == "__main__":
    main()
