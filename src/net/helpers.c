// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions of the kernel as functions that Rust can call.
 *
 * A call from Rust is a real call: what runs for every packet is expressed on the fields of the
 * structures in Rust instead, and only what is cold or depends on the configuration is here.
 */
#include <linux/if_vlan.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/pkt_sched.h>

#include "helpers.h"

void rust_helper_sch_tree_lock(struct Qdisc *sch)
{
	sch_tree_lock(sch);
}

void rust_helper_sch_tree_unlock(struct Qdisc *sch)
{
	sch_tree_unlock(sch);
}

struct sk_buff *rust_helper_qdisc_peek_dequeued(struct Qdisc *sch)
{
	return qdisc_peek_dequeued(sch);
}

void rust_helper_qdisc_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb, u32 reason)
{
	qdisc_dequeue_drop(sch, skb, reason);
}

void rust_helper_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_bstats_update(sch, skb);
}

bool rust_helper_tc_qdisc_stats_dump(struct Qdisc *sch, unsigned long cl,
				     struct qdisc_walker *walker)
{
	return tc_qdisc_stats_dump(sch, cl, walker);
}

/* What the filters at *filters say of a packet. The root lock must be held. */
enum tcf_outcome rust_helper_tcf_classify_outcome(struct sk_buff *skb,
						  struct tcf_proto __rcu **filters, u32 *classid)
{
	struct tcf_proto *first = rcu_dereference_bh(*filters);
	struct tcf_result result = {};
	int action;

	if (!first)
		return TCF_OUTCOME_NONE;
	action = tcf_classify_qdisc(skb, first, &result, false);
	if (action < 0)
		return TCF_OUTCOME_NONE;
#ifdef CONFIG_NET_CLS_ACT
	switch (action) {
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		return TCF_OUTCOME_STOLEN;
	case TC_ACT_SHOT:
		return TCF_OUTCOME_SHOT;
	case TC_ACT_CONSUMED:
		return TCF_OUTCOME_CONSUMED;
	}
#endif
	*classid = result.classid;
	return TCF_OUTCOME_CLASS;
}

void rust_helper_consume_skb(struct sk_buff *skb)
{
	consume_skb(skb);
}

void rust_helper_kfree_skb_reason(struct sk_buff *skb, u32 reason)
{
	kfree_skb_reason(skb, reason);
}

__be16 rust_helper_vlan_get_protocol(const struct sk_buff *skb)
{
	return vlan_get_protocol(skb);
}

int rust_helper_INET_ECN_set_ce(struct sk_buff *skb)
{
	return INET_ECN_set_ce(skb);
}

/* The network header must be writable. */
void rust_helper_skb_clear_dscp(struct sk_buff *skb)
{
	struct ipv6hdr *ip6h = ipv6_hdr(skb);
	__be32 before;

	if (ip6h->version == 4) {
		/* The header's own checksum keeps the sum over the packet unchanged. */
		ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, 0);
		return;
	}
	before = *(__be32 *)ip6h;
	ipv6_change_dsfield(ip6h, INET_ECN_MASK, 0);
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->csum = csum_add(csum_sub(skb->csum, (__force __wsum)before),
				     *(__force __wsum *)ip6h);
}

bool rust_helper_skb_flow_dissect_flow_keys(const struct sk_buff *skb, struct flow_keys *keys,
					    unsigned int flags)
{
	return skb_flow_dissect_flow_keys(skb, keys, flags);
}

/*
 * The ends of a connection as the network behind the translator sees them. Where the connection
 * tracker has not met the packet yet it knows the opposite direction.
 */
bool rust_helper_skb_untranslated(const struct sk_buff *skb, __be32 *src, __be32 *dst,
				  __be16 *sport, __be16 *dport)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	struct nf_conntrack_tuple tuple = {};

	if (!nf_ct_get_tuple_skb(&tuple, skb))
		return false;
	if (!skb->_nfct) {
		swap(src, dst);
		swap(sport, dport);
	}
	*src = tuple.src.u3.ip;
	*dst = tuple.dst.u3.ip;
	*sport = tuple.src.u.all;
	*dport = tuple.dst.u.all;
	return true;
#else
	return false;
#endif
}

struct nlattr *rust_helper_nla_nest_start_noflag(struct sk_buff *skb, int type)
{
	return nla_nest_start_noflag(skb, type);
}

int rust_helper_nla_nest_end(struct sk_buff *skb, struct nlattr *start)
{
	return nla_nest_end(skb, start);
}

void rust_helper_nla_nest_cancel(struct sk_buff *skb, struct nlattr *start)
{
	nla_nest_cancel(skb, start);
}

#if IS_ENABLED(CONFIG_KUNIT)
/* An Ethernet frame as a packet in a qdisc's care, for tests. */
struct sk_buff *rust_helper_skb_of_frame(const void *frame, unsigned int len)
{
	struct sk_buff *skb = alloc_skb(len, GFP_KERNEL);

	if (!skb)
		return NULL;
	skb_put_data(skb, frame, len);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = eth_hdr(skb)->h_proto;
	skb->dev = init_net.loopback_dev;
	qdisc_skb_cb(skb)->pkt_len = len;
	qdisc_skb_cb(skb)->pkt_segs = 1;
	return skb;
}
#endif
