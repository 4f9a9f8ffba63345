#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Experiments on the line that the module was born from: what tuning a tin brings, and costs.

To be run with time travel, where delays come out the same each time but for the dither. Writes
build/experiments/NAME.json for each experiment named, and for all if none is.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "selftests"))

import seed as seed_line  # noqa: E402 pylint: disable=wrong-import-position
from lab import Host, line, module, with_plugin  # noqa: E402 pylint: disable=wrong-import-position
from call import Call  # noqa: E402 pylint: disable=wrong-import-position

OUT = HERE.parents[1] / "build/experiments"
UPLINK = "bandwidth 1969230bit overhead 34 dual-srchost"
DOWNLINK = "bandwidth 40mbit overhead 34 dual-dsthost"
UNMARKED, EF, CS4, AF41 = "0", seed_line.EF, "0x80", "0x88"
GAMES = 3

_experiments = {}
_arguments = argparse.Namespace(short=False)


def experiment(function):
    """Registers an experiment; it returns the rows of its JSON file."""
    _experiments[function.__name__] = function
    return function


def seconds():
    """How long each run lasts, in virtual seconds."""
    return 6 if _arguments.short else 20


def ping(host, server, tos=UNMARKED, period=16):
    """Starts a stream of pings for as long as a run lasts."""
    return seed_line.ping(host, server, seconds(), tos, period)


def delays(stream):
    """What came of a stream of pings."""
    lost, (least, average, most) = seed_line.outcome(stream)
    return {"min_ms": least, "avg_ms": average, "max_ms": most, "lost": lost}


def in_order(streams):
    """What came of several streams, the least worst delay first; one that was lost whole is last."""
    return sorted(map(delays, streams), key=lambda row: row["max_ms"] or float("inf"))


class Transfer:
    """A TCP or UDP transfer by iperf3 for as long as a run lasts."""

    def __init__(self, host, server, *options, port=5201):
        self.sink = server.serve(port)
        self.source = host.start("iperf3", "-J", "-c", server.address, "-p", str(port),
                                 "-t", str(seconds() + 1), *options)

    def end(self):
        """iperf3's own report of the whole."""
        report = json.loads(self.source.communicate()[0])
        self.sink.wait()
        return report["end"]

    def mbit(self):
        """What arrived, in Mbit/s."""
        end = self.end()
        return round((end.get("sum_received") or end["sum"])["bits_per_second"] / 1e6, 3)


def shape(router, words):
    """Shapes what the router's line carries; with the plugin only where tins are tuned."""
    router.run("tc", *f"qdisc add dev wan root cake {words}".split(), env=with_plugin())


def warm_up(hosts, server):
    """Has everybody know everybody's address."""
    for host in hosts:
        host.run("fping", "-c", "2", "-p", "16", "-t", "2000", "-q", server.address)


def play_games(which, words, tos, uplink=True):
    """Three games beside a greedy transfer: (Mbit/s of the transfer, the games' delays)."""
    with module(which), line(hosts=GAMES + 1) as (router, hosts, [server]):
        warm_up(hosts, server)
        if uplink:
            shape(router, f"{UPLINK} diffserv3 {words}")
        else:
            # What shapes the downlink stands at its far end.
            shape(Host("far"), f"{DOWNLINK} diffserv3 {words}")
        transfer = Transfer(hosts[-1], server, *([] if uplink else ["-R"]))
        streams = in_order([ping(host, server, tos) for host in hosts[:GAMES]])
        return transfer.mbit(), streams


VARIANTS = [
    ("unmarked", "rust", "", UNMARKED),
    ("unmarked", "c", "", UNMARKED),
    ("ef", "rust", "", EF),
    ("ef", "c", "", EF),
    ("ef, thresh 50%", "rust", "tin voice thresh 50%", EF),
    ("ef, burst 0", "rust", "tin voice burst 0", EF),
    ("cs4, dscp cs4", "rust", "tin voice dscp cs4", CS4),
]


def play_variants(key, uplink):
    """The variants of the seed, with the transfer's throughput under `key`."""
    rows = []
    for variant, which, words, tos in VARIANTS:
        mbit, streams = play_games(which, words, tos, uplink)
        rows.append({"variant": variant, "module": which, key: mbit, "streams": streams})
    return rows


@experiment
def seed():
    """Three games beside an upload on 2 Mbit/s."""
    return play_variants("upload_mbit", uplink=True)


@experiment
def downlink():
    """The same beside a download on 40 Mbit/s."""
    return play_variants("download_mbit", uplink=False)


@experiment
def share():
    """Worst delay of three games in Voice against Voice's share."""
    rows = []
    percents = (5, 25, 100) if _arguments.short else (5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
    runs = [("c", 25, "", "preset")]
    runs += [("rust", percent, f"tin voice thresh {percent}%", "one packet") for percent in percents]
    runs += [("rust", percent, f"tin voice thresh {percent}% burst 0", "0") for percent in percents]
    for which, percent, words, burst in runs:
        mbit, streams = play_games(which, words, EF)
        rows.append({"module": which, "share_percent": percent, "burst": burst, "upload_mbit": mbit,
                     "max_ms": [stream["max_ms"] for stream in streams]})
    return rows


@experiment
def greedy():
    """A greedy flow marked EF at ten times Voice's threshold, and who suffers from it."""
    rows = []
    flood = ["-u", "-b", "4923k", "-l", "1200", "-S", EF]
    for which, words, is_greedy in [
            ("rust", "", False), ("c", "", False), ("c", "", True),
            ("rust", "tin voice burst 0", True), ("rust", "", True)]:
        with module(which), line(hosts=5) as (router, [first, second, sparse, uploader, greedy_one],
                                              [server]):
            warm_up([first, second, sparse, uploader, greedy_one], server)
            shape(router, f"{UPLINK} diffserv3 {words}")
            upload = Transfer(uploader, server)
            greedy_flow = Transfer(greedy_one, server, *flood, port=5202) if is_greedy else None
            unmarked = [ping(first, server), ping(second, server, period=20)]
            marked = ping(sparse, server, EF, period=20)
            rows.append({
                "module": which, "burst": "0" if "burst" in words or which == "c" else "one packet",
                "greedy": is_greedy, "unmarked": in_order(unmarked), "sparse_ef": delays(marked),
                "greedy_mbit": greedy_flow.mbit() if greedy_flow else 0.0,
                "upload_mbit": upload.mbit()})
    return rows


@experiment
def target():
    """Target and interval of Best Effort at 2 Mbit/s: delay against throughput of an upload."""
    rows = []
    settings = [(10, 100), (40, 200)] if _arguments.short else [
        (target_ms, interval_ms) for target_ms in (3, 6, 10, 20, 40, 80)
        for interval_ms in (50, 100, 200) if interval_ms > target_ms]
    for which, setting in [("c", None), ("rust", None), *(("rust", pair) for pair in settings)]:
        words = setting and "tin besteffort target {}ms interval {}ms".format(*setting) or ""
        with module(which), line() as (router, [host], [server]):
            # The round-trip time of a server in the same country.
            server.run("tc qdisc add dev eth0 root netem delay 30ms limit 10000")
            warm_up([host], server)
            shape(router, f"{UPLINK} diffserv3 {words}")
            # Small blocks, for a fine throughput.
            end = Transfer(host, server, "-l", "4K").end()
        rows.append({
            "module": which, "target_ms": setting and setting[0], "interval_ms": setting and setting[1],
            "upload_mbit": round(end["sum_received"]["bits_per_second"] / 1e6, 3),
            "mean_rtt_ms": end["streams"][0]["sender"]["mean_rtt"] / 1000,
            "max_rtt_ms": end["streams"][0]["sender"]["max_rtt"] / 1000})
    return rows


@experiment
def hosting():
    """One console hosts a game: 700 kbit/s marked EF against Voice's 492, beside an upload."""
    rows = []
    for which, words in [("c", ""), ("rust", ""), ("rust", "tin voice thresh 50%")]:
        with module(which), line(hosts=2) as (router, [console, uploader], [server]):
            warm_up([console, uploader], server)
            shape(router, f"{UPLINK} diffserv3 {words}")
            upload = Transfer(uploader, server)
            # 212 bytes on the link, 2.4 ms apart, are 700 kbit/s.
            rows.append({"module": which, "words": words,
                         "game": delays(ping(console, server, EF, period=2.4)),
                         "upload_mbit": upload.mbit()})
    return rows


@experiment
def call():
    """A video call of 1.5 Mbit/s each way beside two uploads."""
    rows = []
    tuned = "tin video thresh 85% burst 12kb dscp af41"
    for name, which, words, tos in [
            ("diffserv3, unmarked", "c", "diffserv3", UNMARKED),
            ("diffserv3, unmarked", "rust", "diffserv3", UNMARKED),
            ("diffserv4, af41", "c", "diffserv4", AF41),
            ("diffserv4, af41", "rust", "diffserv4", AF41),
            ("diffserv4, af41, tuned", "rust", f"diffserv4 {tuned}", AF41)]:
        with module(which), line(hosts=3) as (router, [caller, *uploaders], [server]):
            warm_up([caller, *uploaders], server)
            shape(router, f"{UPLINK} {words}")
            uploads = [Transfer(host, server, port=5201 + i) for i, host in enumerate(uploaders)]
            with Call(caller, server, int(tos, 0), seconds()) as talk:
                up, down = talk.results()
            rows.append({"variant": name, "module": which, "words": words, "up": up, "down": down,
                         "upload_mbit": round(sum(upload.mbit() for upload in uploads), 3)})
    return rows


def main():
    """Runs the experiments and writes what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="shorter runs")
    parser.add_argument("names", nargs="*", choices=[*_experiments, []])
    parser.parse_args(namespace=_arguments)
    OUT.mkdir(parents=True, exist_ok=True)
    for name in _arguments.names or _experiments:
        print(f"{name}: {_experiments[name].__doc__}", flush=True)
        rows = _experiments[name]()
        for row in rows:
            print(f"  {json.dumps(row)}", flush=True)
        (OUT / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
