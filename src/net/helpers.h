/* SPDX-License-Identifier: GPL-2.0 */
/* Inline functions of the kernel as functions that Rust can call. */
#ifndef _NET_HELPERS_H
#define _NET_HELPERS_H

#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/sch_generic.h>

void rust_helper_sch_tree_lock(struct Qdisc *sch);
void rust_helper_sch_tree_unlock(struct Qdisc *sch);
struct sk_buff *rust_helper_qdisc_peek_dequeued(struct Qdisc *sch);
void rust_helper_qdisc_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb, u32 reason);
void rust_helper_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb);
bool rust_helper_tc_qdisc_stats_dump(struct Qdisc *sch, unsigned long cl,
				     struct qdisc_walker *walker);

enum tcf_outcome {
	TCF_OUTCOME_NONE,
	TCF_OUTCOME_CLASS,
	TCF_OUTCOME_STOLEN,
	TCF_OUTCOME_SHOT,
	TCF_OUTCOME_CONSUMED,
};

enum tcf_outcome rust_helper_tcf_classify_outcome(struct sk_buff *skb,
						  struct tcf_proto __rcu **filters, u32 *classid);

void rust_helper_consume_skb(struct sk_buff *skb);
void rust_helper_kfree_skb_reason(struct sk_buff *skb, u32 reason);
__be16 rust_helper_vlan_get_protocol(const struct sk_buff *skb);
int rust_helper_INET_ECN_set_ce(struct sk_buff *skb);
void rust_helper_skb_clear_dscp(struct sk_buff *skb);
bool rust_helper_skb_flow_dissect_flow_keys(const struct sk_buff *skb, struct flow_keys *keys,
					    unsigned int flags);

bool rust_helper_skb_untranslated(const struct sk_buff *skb, __be32 *src, __be32 *dst,
				  __be16 *sport, __be16 *dport);

struct nlattr *rust_helper_nla_nest_start_noflag(struct sk_buff *skb, int type);
int rust_helper_nla_nest_end(struct sk_buff *skb, struct nlattr *start);
void rust_helper_nla_nest_cancel(struct sk_buff *skb, struct nlattr *start);

#if IS_ENABLED(CONFIG_KUNIT)
struct sk_buff *rust_helper_skb_of_frame(const void *frame, unsigned int len);
#endif
#endif
