/* SPDX-License-Identifier: GPL-2.0 */
/* Input of bindgen: the numbers that go over netlink. */
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/pkt_sched_cake.h>
