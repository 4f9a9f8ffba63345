/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen: the part of the kernel's C API that src/net wraps.
 *
 * What bindgen cannot translate is given here under a name of its own: values of macros as
 * constants, and the place of fields that live in unnamed unions.
 */
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <net/flow_dissector.h>
#include <net/gen_stats.h>
#include <net/gso.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/sch_priv.h>

/* The headers group of struct sk_buff, which has no tag. */
typedef typeof(((struct sk_buff *)0)->headers) sk_buff_headers;

static const size_t RUST_CONST_HELPER_SK_BUFF_HEADERS_OFFSET = offsetof(struct sk_buff, headers);
static const size_t RUST_CONST_HELPER_SK_BUFF_MARK_OFFSET = offsetof(struct sk_buff, mark);
static const size_t RUST_CONST_HELPER_NETNS_BPF_DISSECTOR_OFFSET =
	offsetof(struct net, bpf.run_array[NETNS_BPF_FLOW_DISSECTOR]);

static const u32 RUST_CONST_HELPER_FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL =
	FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL;
static const bool RUST_CONST_HELPER_HAS_NF_CONNTRACK = IS_ENABLED(CONFIG_NF_CONNTRACK);
static const netdev_features_t RUST_CONST_HELPER_NETIF_F_GSO_MASK = NETIF_F_GSO_MASK;

#include "uapi/linux/pkt_sched_cake.h"

/* Inline functions wrapped in src/net/helpers.c. */
#include "../src/net/helpers.h"
