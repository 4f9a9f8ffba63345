# SPDX-License-Identifier: GPL-2.0
"""Requests about qdiscs and links as bytes, valid or not, from one socket."""

import socket
import struct

RTM_NEWLINK, RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC, RTM_GETTCLASS = 16, 36, 37, 38, 42
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO, NLM_F_DUMP = 1, 4, 8, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
SOL_NETLINK, NETLINK_EXT_ACK = 270, 11
NLM_F_ACK_TLVS, NLMSGERR_ATTR_MSG = 0x200, 1
TC_H_ROOT, HANDLE = 0xFFFFFFFF, 0x10000
TCA_KIND, TCA_OPTIONS = 1, 2
(TCA_CAKE_BASE_RATE64, TCA_CAKE_DIFFSERV_MODE, TCA_CAKE_ATM, TCA_CAKE_FLOW_MODE, TCA_CAKE_OVERHEAD,
 TCA_CAKE_RTT, TCA_CAKE_TARGET, TCA_CAKE_AUTORATE, TCA_CAKE_MEMORY, TCA_CAKE_NAT, TCA_CAKE_RAW,
 TCA_CAKE_WASH, TCA_CAKE_MPU, TCA_CAKE_INGRESS, TCA_CAKE_ACK_FILTER, TCA_CAKE_SPLIT_GSO,
 TCA_CAKE_FWMARK) = range(2, 19)
TCA_CAKE_TINS = 0x1000
RATE64, SHARE, TARGET, INTERVAL, BURST, DSCP, RESET = range(1, 8)
IFF_UP = 1


def attribute(kind, *payload):
    """An attribute of bytes and of other attributes."""
    data = b"".join(payload)
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)


def u32(kind, value):
    """An attribute of 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def u64(kind, value):
    """An attribute of 64 bits."""
    return attribute(kind, struct.pack("=Q", value))


def tin(number, *settings):
    """TCA_CAKE_TINS with settings of one tin."""
    return attribute(TCA_CAKE_TINS, attribute(number, *settings))


class Netlink:
    """A socket, in the namespace in which it was opened."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self.socket.bind((0, 0))
        self.socket.settimeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def message(self, kind, flags, body):
        """Sends a request and returns the first answer: (its type, its flags, its bytes)."""
        header = struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 1, 0)
        self.socket.send(header + body)
        reply = self.socket.recv(1 << 17)
        length, kind, flags = struct.unpack_from("=IHH", reply)
        return kind, flags, reply[:length]

    def ask(self, kind, flags, body):
        """Sends a request and returns (errno, explanation)."""
        kind, flags, reply = self.message(kind, flags | NLM_F_ACK, body)
        assert kind == NLMSG_ERROR, kind
        error, original = struct.unpack_from("=iI", reply, 16)
        message = ""
        if flags & NLM_F_ACK_TLVS:
            at = 20 + original if error else 36
            while at + 4 <= len(reply):
                size, kind = struct.unpack_from("=HH", reply, at)
                if kind == NLMSGERR_ATTR_MSG:
                    message = reply[at + 4:at + size].rstrip(b"\0").decode()
                at += size + 3 & ~3
        return -error, message

    @staticmethod
    def about(index, *attributes, parent=TC_H_ROOT, handle=HANDLE):
        """The body of a request about a qdisc."""
        return struct.pack("=BxxxiIII", 0, index, handle, parent, 0) + b"".join(attributes)

    def change(self, index, *options, flags=0, kind=b"cake"):
        """Changes the qdisc at a device's root, or adds one if the flags say so."""
        body = self.about(index, attribute(TCA_KIND, kind + b"\0"),
                          attribute(TCA_OPTIONS, *options))
        return self.ask(RTM_NEWQDISC, flags, body)

    def delete(self, index):
        """Deletes the qdisc at a device's root."""
        return self.ask(RTM_DELQDISC, 0, self.about(index, handle=0))

    def options(self, index):
        """The options of the qdisc at a device's root as bytes; None if there is no cake."""
        kind, _, reply = self.message(RTM_GETQDISC, NLM_F_ECHO, self.about(index))
        if kind != RTM_NEWQDISC:
            return None
        at = 36
        while at + 4 <= len(reply):
            size, kind = struct.unpack_from("=HH", reply, at)
            if kind == TCA_OPTIONS:
                return reply[at + 4:at + size]
            at += size + 3 & ~3
        return None

    def dump(self, kind, index):
        """Dumps qdiscs or classes and returns how many parts came, or a negative errno."""
        self.socket.send(struct.pack("=IHHII", 36, kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
                         + self.about(index, handle=0, parent=0))
        parts = 0
        while True:
            reply = self.socket.recv(1 << 17)
            at = 0
            while at + 16 <= len(reply):
                size, kind = struct.unpack_from("=IH", reply, at)
                if kind == NLMSG_ERROR:
                    return struct.unpack_from("=i", reply, at + 16)[0]
                if kind == NLMSG_DONE:
                    return struct.unpack_from("=i", reply, at + 16)[0] or parts
                parts += 1
                at += size + 3 & ~3

    def set_up(self, index, is_up):
        """Sets a link up or down."""
        return self.ask(RTM_NEWLINK, 0, struct.pack("=BxHiII", 0, 0, index, IFF_UP * is_up, IFF_UP))
