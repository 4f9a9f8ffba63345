#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The plugin for tc: what it sends and prints, beside tc's own code, and what only it can say.

To be run with time travel, where statistics stand still while they are looked at.
"""

import contextlib
import json
import random
import re
import socket
import struct
import subprocess

from lab import TCS, main, module, run, short, test, with_plugin
from show import CHANGES, KEYWORDS, TIN_MODES, box_with_dummy

ETH_P_ALL = 3
RTM_NEWQDISC = 36
NLM_F_REQUEST = 1
SEED = ("bandwidth 1969230bit overhead 34 dual-srchost diffserv3 "
        "tin voice thresh 50% target 10ms interval 60ms burst 2kb dscp cs4,ef")


def plugged(box, words, tc=TCS[0], **options):
    """Runs tc with the plugin."""
    return box.run(tc, *words.split(), env=with_plugin(), **options)


def attempt(box, words, tc=TCS[0]):
    """Exit status and error output of tc with the plugin."""
    process = box.start(tc, *words.split(), env=with_plugin())
    message = process.communicate()[1]
    return process.returncode, message


@contextlib.contextmanager
def requests():
    """A function that returns the requests about qdiscs that were sent since it was called."""
    run("ip link add nlmon0 type nlmon")
    run("ip link set nlmon0 up")
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as tap:
            tap.bind(("nlmon0", 0))
            tap.setblocking(False)

            def taken():
                found = []
                with contextlib.suppress(BlockingIOError):
                    while True:
                        message = tap.recv(1 << 16)
                        length, kind, flags, _, _ = struct.unpack_from("=IHHII", message)
                        if kind == RTM_NEWQDISC and flags & NLM_F_REQUEST:
                            # The sequence number is the time.
                            found.append(message[:8] + bytes(8) + message[16:length])
                return found

            yield taken
    finally:
        run("ip link del nlmon0")


# Words on which tc and the plugin must agree, beyond those of the manual: repetitions, zeros.
ODD = ["bandwidth 1969230bit", "bandwidth 0", "mpu 0", "rtt 0", "memlimit 0", "fwmark 0",
       "bandwidth 1mbit unlimited", "unlimited bandwidth 1mbit", "diffserv", "raw overhead 18",
       "overhead 18 raw", "docsis ether-vlan", "ethernet docsis", "overhead 5 pppoe-ptm", "nat nonat",
       "conservative noatm", "fwmark 010", "bandwidth 1gibit", "memlimit 5000", "rtt 1234567us",
       "autorate-ingress bandwidth 1mbit", "bandwidth 1mbit autorate-ingress unlimited"]


@test
def requests_are_tcs_own_byte_for_byte():
    with module("rust"), box_with_dummy() as box, box.entered(), requests() as taken:
        for tc in TCS:
            wordings = list(dict.fromkeys(ODD + KEYWORDS + TIN_MODES + CHANGES))
            for words in wordings[:: 3 if short() and tc != TCS[0] else 1]:
                sent = []
                for environment in (None, with_plugin()):
                    box.run(tc, *f"qdisc replace dev d0 root handle 1: cake {words}".split(),
                            env=environment)
                    sent.append(taken())
                assert len(sent[0]) == 1 and sent[0] == sent[1], f"{tc}: cake {words}: {sent}"


def both_show(box, tc):
    """What tc and the plugin show in each way: [(theirs, ours), …], of the same moment."""
    def at_once(way):
        for _ in range(100):
            theirs, ours = box.run(tc, *way.split()), plugged(box, way, tc)
            if theirs == box.run(tc, *way.split()):
                # A bandwidth that would read back as another one is written out by the plugin.
                return [re.sub(r"bandwidth \S+", "", text) if "-iec" in way else text
                        for text in (theirs, ours)]
        raise AssertionError(f"tc {way} shows something else each time")

    ways = ("qdisc show dev d0", "-s qdisc show dev d0", "-s -j qdisc show dev d0",
            "-o -s qdisc show dev d0", "-iec -s qdisc show dev d0", "-s class show dev d0",
            "-s -j class show dev d0")
    return [at_once(way) for way in ways]


def shows_active_queues(tc):
    """Whether this tc knows the statistic; the plugin shows it in any."""
    return tc != TCS[0]


@test
def output_is_tcs_own_byte_for_byte():
    wordings = list(dict.fromkeys(TIN_MODES + KEYWORDS))
    with module("rust"), box_with_dummy() as box:
        box.run("ip addr add 192.0.2.1/24 dev d0")
        for tc in TCS:
            for words in wordings[::9 if short() else 1]:
                box.run(f"tc qdisc add dev d0 root handle 1: cake {words}")
                with box.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                    for port in range(40):
                        with contextlib.suppress(OSError):
                            out.sendto(bytes(1000), ("192.0.2.2", port + 1))
                for theirs, ours in both_show(box, tc):
                    if not shows_active_queues(tc):
                        ours = re.sub(r" active queues: .*\n|\"active_queues\":\d+,", "", ours)
                    for line, other in zip(theirs.splitlines(), ours.splitlines()):
                        assert line == other, f"{tc}: cake {words}:\ntc:     {line}\nplugin: {other}"
                    assert theirs == ours, f"{tc}: cake {words}: one shows more than the other"
                box.run("tc qdisc del dev d0 root")


def random_words(generator):
    """A random but valid command line."""
    pick = generator.choice
    mode = pick(["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"])
    names = {"diffserv3": ["bulk", "besteffort", "voice"], "besteffort": ["tin0"],
             "diffserv4": ["bulk", "besteffort", "video", "voice"]}.get(
                 mode, [f"tin{i}" for i in range(8)])
    words = [mode, pick(["unlimited", f"bandwidth {generator.randrange(512, 10**10)}bit"]),
             f"rtt {generator.randrange(1, 10**9)}us", f"memlimit {generator.randrange(1, 10**8)}b",
             f"overhead {generator.randrange(-64, 257)}", pick(["noatm", "atm", "ptm", "raw"]),
             pick(["flows", "dual-dsthost", "flowblind"]), pick(["nat", "nonat"]),
             f"fwmark {generator.randrange(1, 2**32)}", f"mpu {generator.randrange(1, 257)}"]
    points = generator.sample(range(64), 64)
    for name in generator.sample(names, generator.randrange(len(names) + 1)):
        target = generator.randrange(1, 10**8)
        own, points = points[:generator.randrange(1, 8)], points[8:]
        settings = [pick([f"thresh {generator.randrange(1, 10**6 + 1) / 10**4}%",
                          f"thresh {generator.randrange(512, 10**10)}bit"]),
                    f"target {target}us", f"interval {target + generator.randrange(1, 10**8)}us",
                    f"burst {generator.randrange(2**20 + 1)}b",
                    "dscp " + ",".join(map(str, own or [0]))]
        words += ["tin", name, *generator.sample(settings, generator.randrange(1, 6))]
    return " ".join(words)


@test
def what_is_printed_can_be_typed_back():
    generator = random.Random(4)
    with module("rust"), box_with_dummy() as box:
        for words in [*KEYWORDS, *ODD, SEED, *(random_words(generator) for _ in range(20 if short() else 200))]:
            plugged(box, f"qdisc add dev d0 root handle 1: cake {words}")
            first = plugged(box, "-j qdisc show dev d0")
            text = plugged(box, "qdisc show dev d0").split(" refcnt 2 ")[1]
            box.run("tc qdisc del dev d0 root")
            plugged(box, f"qdisc add dev d0 root handle 1: cake {text}")
            assert plugged(box, "-j qdisc show dev d0") == first, f"cake {words}: {text}"
            box.run("tc qdisc del dev d0 root")


@test
def json_holds_what_was_set_of_tins():
    with module("rust"), box_with_dummy() as box:
        for tc in TCS:
            plugged(box, f"qdisc replace dev d0 root cake {SEED}", tc)
            options = json.loads(plugged(box, "-j qdisc show dev d0", tc))[0]["options"]
            assert options["tins"] == [{
                "tin": "voice", "thresh_share_ppm": 500000, "target_us": 10000,
                "interval_us": 60000, "burst": 2048, "dscp": ["cs4", "ef"]}], options
            plugged(box, "qdisc change dev d0 root cake tin voice default", tc)
            options = json.loads(plugged(box, "-j qdisc show dev d0", tc))[0]["options"]
            assert "tins" not in options, options


@test
def old_tc_shows_the_values_in_force():
    with module("rust"), box_with_dummy() as box:
        plugged(box, f"qdisc add dev d0 root cake {SEED}")
        text = box.run("tc -s qdisc show dev d0")
        rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}
        assert rows["thresh"][2] == "984608bit", rows["thresh"]
        assert (rows["target"][2], rows["interval"][2]) == ("10ms", "60ms"), rows


# A command line, what the message must hold, and the exit status.
WRONG = [
    ("tin video thresh 20%", ["video", "bulk, besteffort, voice"], 2),
    ("tin voice thresh 0", ["voice", "thresh 0"], 2),
    ("tin voice thresh 120%", ["voice", "120%"], 2),
    ("tin voice thresh 0%", ["voice", "0%"], 2),
    ("tin voice thresh -5%", ["voice", "-5%"], 2),
    ("tin voice thresh nan%", ["voice", "nan%"], 2),
    ("tin voice thresh much", ["voice", "thresh", "much"], 2),
    ("tin voice target 10ms interval 10ms", ["voice", "interval", "target"], 2),
    ("tin voice interval 9ms", ["voice", "interval", "target"], 2),
    ("tin voice target 60ms", ["voice", "interval", "target"], 2),
    ("tin voice target 0", ["voice", "target 0"], 2),
    ("tin voice burst 2mb", ["voice", "burst 2mb"], 2),
    ("tin voice burst", ["voice", "burst"], 2),
    ("tin bulk dscp ef", ["bulk", "ef", "voice"], 2),
    ("tin bulk dscp af11 tin voice dscp af11", ["bulk", "voice", "af11"], 2),
    ("tin voice dscp af14", ["voice", "af14", "af1"], 2),
    ("tin voice dscp 64", ["voice", "64"], 2),
    ("tin", ["tin", "name"], 2),
    ("tin voice", ["voice", "thresh", "dscp"], 2),
    ("tin voice tresh 50%", ["voice", "tresh", "Did you mean \"thresh\""], 2),
    ("tin voice thresh 50% brust 0", ["brust", "burst"], 1),
    ("bandwith 5mbit", ["bandwith", "Did you mean \"bandwidth\""], 1),
    ("rtt soon", ["rtt", "soon"], 1),
    ("overhead 257", ["overhead", "-64", "256"], 1),
]


@test
def wrong_words_get_one_line_and_change_nothing():
    with module("rust"), box_with_dummy() as box:
        for tc in TCS:
            plugged(box, f"qdisc replace dev d0 root cake {SEED}", tc)
            before = plugged(box, "-s qdisc show dev d0", tc)
            for words, parts, status in WRONG:
                # What comes before the error must not be applied either.
                found, message = attempt(box, f"qdisc change dev d0 root cake nat {words}", tc)
                assert found == status, f"{words}: exit status {found}: {message}"
                assert all(part in message for part in parts), f"{words}: {message}"
                assert message.count("\n") <= 1, message
                assert plugged(box, "-s qdisc show dev d0", tc) == before, words


@test
def wrong_line_of_a_batch_does_not_end_it():
    with module("rust"), box_with_dummy() as box:
        plugged(box, "qdisc add dev d0 root cake")
        process = box.start("tc -force -b -", env=with_plugin(), stdin=subprocess.PIPE)
        message = process.communicate("qdisc change dev d0 root cake tin voice thresh 0\n"
                                      "qdisc change dev d0 root cake nat\n")[1]
        assert "thresh 0" in message and process.returncode, message
        assert " nat " in plugged(box, "qdisc show dev d0")


@test
def names_of_tins_are_those_of_the_mode_in_force():
    with module("rust"), box_with_dummy() as box:
        plugged(box, "qdisc add dev d0 root cake diffserv4")
        plugged(box, "qdisc change dev d0 root cake tin video target 7ms")
        assert "tin video target 7ms" in plugged(box, "qdisc show dev d0")
        plugged(box, "qdisc replace dev d0 root cake tin voice target 8ms")
        shown = plugged(box, "qdisc show dev d0")
        assert "tin video target 7ms tin voice target 8ms" in shown, shown
        # The word may come after the tins, and a new mode forgets the old one's.
        plugged(box, "qdisc change dev d0 root cake tin tin7 burst 0 diffserv8")
        shown = plugged(box, "qdisc show dev d0")
        assert "tin tin7 burst 0b" in shown and "video" not in shown, shown
        status, message = attempt(box, "qdisc add dev d1 root cake tin tin0 burst 0")
        assert status == 2 and "bulk, besteffort, voice" in message, message
        status, message = attempt(box, "qdisc change dev d1 root cake tin voice burst 0")
        assert status and "d1" in message, message


@test
def help_keeps_its_shape():
    with module("rust"), box_with_dummy() as box:
        for tc in TCS:
            theirs = subprocess.run([tc, *"qdisc add dev d0 root cake help".split()],
                                    capture_output=True, text=True, check=False)
            status, ours = attempt(box, "qdisc add dev d0 root cake help", tc)
            assert status == theirs.returncode
            missing = [line for line in theirs.stderr.splitlines() if line not in ours.splitlines()]
            assert not missing and "tin NAME" in ours, missing


@test
def cake_mq_is_served_in_any_tc():
    with module("rust"), box_with_dummy() as box:
        run("ip", "link", "add", "q0", "netns", box.name, "numtxqueues", "2", "type", "dummy")
        box.run("ip link set q0 up")
        for tc in TCS:
            plugged(box, "qdisc replace dev q0 root handle 1: cake_mq bandwidth 8mbit diffserv4", tc)
            plugged(box, "qdisc change dev q0 root cake_mq tin video thresh 30% dscp 33", tc)
            rows = json.loads(plugged(box, "-s -j qdisc show dev q0", tc))
            assert {row["kind"] for row in rows} == {"cake", "cake_mq"} and len(rows) == 3, rows
            for row in rows:
                assert row["options"]["tins"] == [
                    {"tin": "video", "thresh_share_ppm": 300000, "dscp": ["33"]}], row
            for words in ("tin voice thresh 120%", "tin voice target 9ms interval 9ms",
                          "nat tin video interval 1us tin bulk dscp 33"):
                assert attempt(box, f"qdisc change dev q0 root cake_mq {words}", tc)[0] == 2, words
            assert json.loads(plugged(box, "-s -j qdisc show dev q0", tc)) == rows
            children = [row for row in rows if row["kind"] == "cake"]
            assert all(row["tins"][2]["threshold_rate"] == 300000 for row in children), children
            box.run("tc qdisc del dev q0 root")


if __name__ == "__main__":
    main()
