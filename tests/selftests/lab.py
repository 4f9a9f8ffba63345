# SPDX-License-Identifier: GPL-2.0
"""The laboratory that the tests share: modules, links between namespaces, tc, KTAP.

A test program is a list of functions decorated with @test; `main()` runs them and prints KTAP.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("c", "rust")
# Where the plugin for tc is: what scripts/build.sh tc made.
PLUGIN = os.environ.get("CAKE_PLUGIN", str(HERE.parents[1] / "build/tc"))
# The release's own tc, and the newest.
TCS = ("/usr/sbin/tc", "/opt/iproute2/usr/sbin/tc")

_tests = []
_arguments = argparse.Namespace(short=False)


class Skip(Exception):
    """What the test needs is not there; the message says what."""


def test(function):
    """Registers a test. Its docstring, or else its name, is the fact that it shows."""
    _tests.append(function)
    return function


def note(text):
    """Prints a KTAP diagnostic."""
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def short():
    """Whether the short form was asked for."""
    return _arguments.short


def main():
    """Runs the registered tests; exit status 1 if one failed."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--short", action="store_true", help="fewer and shorter runs")
    parser.add_argument("names", nargs="*", help="run only these tests")
    parser.parse_args(namespace=_arguments)
    chosen = [t for t in _tests if t.__module__ == "__main__"
              and (not _arguments.names or t.__name__ in _arguments.names)]
    print("KTAP version 1")
    print(f"1..{len(chosen)}")
    failed = 0
    for number, function in enumerate(chosen, 1):
        name = function.__name__
        try:
            function()
            result = f"ok {number} {name}"
        except Skip as reason:
            result = f"ok {number} {name} # SKIP {reason}"
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            if not isinstance(error, AssertionError):
                note(traceback.format_exc())
            note(error)
            result = f"not ok {number} {name}"
        print(result, flush=True)
    sys.exit(1 if failed else 0)


def run(*command, check=True, **options):
    """Runs a command given as words or as one string to split; returns its output."""
    words = command[0].split() if len(command) == 1 else list(command)
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def with_plugin():
    """The environment in which tc finds the plugin."""
    if not os.path.exists(f"{PLUGIN}/q_cake.so"):
        raise RuntimeError(f"{PLUGIN}/q_cake.so is missing: build it with scripts/build.sh tc")
    return {**os.environ, "TC_LIB_DIR": PLUGIN}


def tc(*command, **options):
    """Runs tc in this namespace."""
    return run("tc", *(command[0].split() if len(command) == 1 else command), **options)


@contextlib.contextmanager
def module(which):
    """Has sch_cake loaded, the kernel's own ("c") or ours ("rust"), and unloads it afterwards.

    Ours is the file that CAKE_MODULE names, or else the one that is installed, which modprobe
    prefers to the kernel's own.
    """
    path = os.environ.get("CAKE_MODULE")
    if which == "c":
        [own] = pathlib.Path("/usr/lib/modules", os.uname().release).glob(
            "kernel/net/sched/sch_cake.ko*")
        run("insmod", str(own))
    elif path:
        if not os.path.exists(path):
            raise RuntimeError(f"{path} is missing: build it with scripts/build.sh")
        run("insmod", path)
    else:
        run("modprobe sch_cake")
    try:
        yield which
    finally:
        # Namespaces, and qdiscs with them, go some time after they were deleted.
        for _ in range(100):
            if not run("rmmod sch_cake", check=False) and not is_loaded():
                break
            time.sleep(0.1)
        assert not is_loaded(), "sch_cake is still in use"


def is_loaded():
    """Whether a sch_cake is loaded."""
    return os.path.exists("/sys/module/sch_cake")


TROUBLE = re.compile(
    r"WARNING:|BUG:|Oops|Call Trace|general protection|INFO: (task|rcu)|UBSAN|KASAN|ODEBUG|"
    r"kmemleak: \d+ new|inconsistent lock state|"
    r"possible (circular|recursive|irq)|suspicious RCU|refcount_t:|unregister_netdevice: waiting|"
    r"sch_cake: (?!loading out-of-tree|module verification)")


def kernel_log():
    """The kernel log's lines that should not be there."""
    return [text for text in run("dmesg").splitlines() if TROUBLE.search(text)]


LEAKS = pathlib.Path("/sys/kernel/debug/kmemleak")


def leaks():
    """What kmemleak holds for lost, where the kernel has it, and was not at boot."""
    if not LEAKS.exists():
        return ""
    # What is on its way to be freed looks lost to the first scan.
    for _ in range(2):
        time.sleep(6)
        LEAKS.write_text("scan", encoding="ascii")
    blocks = re.split("^(?=unreferenced)", LEAKS.read_text(encoding="ascii"), flags=re.M)
    return "".join(block for block in blocks if 'comm "swapper/0"' not in block)


@dataclasses.dataclass
class Host:
    """A network namespace with an address."""

    name: str
    address: str = ""

    def run(self, *command, **options):
        """Runs a command in the namespace."""
        words = command[0].split() if len(command) == 1 else list(command)
        return run("nsenter", f"--net=/run/netns/{self.name}", *words, **options)

    def start(self, *command, **options):
        """Starts a command in the namespace; stop it or wait for it before the namespace goes."""
        words = command[0].split() if len(command) == 1 else list(command)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{self.name}", *words], text=True, **options)

    @contextlib.contextmanager
    def entered(self):
        """Has this process itself in the namespace."""
        with open("/proc/self/ns/net", "rb") as outside, \
                open(f"/run/netns/{self.name}", "rb") as inside:
            os.setns(inside.fileno(), os.CLONE_NEWNET)
            try:
                yield
            finally:
                os.setns(outside.fileno(), os.CLONE_NEWNET)

    def serve(self, port=5201):
        """Starts an iperf3 server for one test and waits until it listens."""
        server = self.start("iperf3", "-s", "-1", "-p", str(port))
        for _ in range(200):
            if self.run("ss", "-Hltn", f"sport = :{port}"):
                return server
            time.sleep(0.02)
        server.kill()
        raise RuntimeError(f"iperf3 does not listen on port {port}")


@contextlib.contextmanager
def namespaces(*names):
    """Namespaces that are gone afterwards, with their devices."""
    made = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield [Host(name) for name in names]
    finally:
        for name in made:
            run("ip", "netns", "del", name, check=False)


def plug(left, left_device, right, right_device):
    """Joins two namespaces by a veth pair, without offloads, and brings both ends up."""
    run("ip", "link", "add", left_device, "netns", left.name, "type", "veth",
        "peer", "name", right_device, "netns", right.name)
    for host, device in ((left, left_device), (right, right_device)):
        # Whole packets: what the qdisc sees is what a link would see.
        host.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off")
        run("ip", "-n", host.name, "link", "set", device, "up")


@contextlib.contextmanager
def line(hosts=1, servers=1):
    """The line of a home: hosts h1…hN, a router, and servers s1…sN behind one link.

    Yields (router, hosts, servers). The router's device to the servers is `wan`, where a qdisc
    shapes what the hosts upload; `lan` devices are l1…lN. Host i has 192.0.2.(i+100), server i
    198.51.100.(i+100).
    """
    names = [f"h{i}" for i in range(1, hosts + 1)] + [f"s{i}" for i in range(1, servers + 1)]
    with namespaces("router", "far", *names) as (router, far, *others):
        inner, outer = others[:hosts], others[hosts:]
        plug(router, "wan", far, "wan")
        router.run("ip addr add 203.0.113.1/30 dev wan")
        far.run("ip addr add 203.0.113.2/30 dev wan")
        for node, group, network in ((router, inner, "192.0.2"), (far, outer, "198.51.100")):
            node.run("sysctl -qw net.ipv4.ip_forward=1")
            run("ip", "-n", node.name, "link", "add", "lan", "type", "bridge")
            for i, host in enumerate(group, 1):
                plug(node, f"l{i}", host, "eth0")
                run("ip", "-n", node.name, "link", "set", f"l{i}", "master", "lan")
                host.address = f"{network}.{i + 100}"
                host.run(f"ip addr add {host.address}/24 dev eth0")
                host.run(f"ip route add default via {network}.1")
            node.run(f"ip addr add {network}.1/24 dev lan")
            node.run("ip link set lan up")
        router.run("ip route add default via 203.0.113.2")
        far.run("ip route add default via 203.0.113.1")
        yield router, inner, outer


def qdisc_json(host, device):
    """The statistics of a device's root qdisc as tc's JSON has them."""
    return json.loads(host.run("tc", "-s", "-j", "qdisc", "show", "dev", device, "root"))[0]
