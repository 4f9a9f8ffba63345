/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What this implementation of CAKE adds to <linux/pkt_sched.h>: settings for single tins.
 *
 * The option TCA_CAKE_TINS nests an attribute for each tin, whose type is the tin's position in
 * TCA_CAKE_STATS_TIN_STATS, counted from 1. Each of these nests TCA_CAKE_TIN_* attributes. One that
 * is absent leaves its setting as it was. A request applies whole or not at all.
 *
 * A dump holds what was set; what is in force is in the statistics. A change of the DiffServ mode
 * drops all settings, because the positions then stand for other tins.
 */
#ifndef _UAPI_LINUX_PKT_SCHED_CAKE_H
#define _UAPI_LINUX_PKT_SCHED_CAKE_H

/* Far from the options of <linux/pkt_sched.h>, so that these can grow. */
#define TCA_CAKE_TINS 0x1000

enum {
	TCA_CAKE_TIN_UNSPEC,
	/* u64, bytes per second, at least 64: the threshold. 0: the mode's. Not beside a share. */
	TCA_CAKE_TIN_THRESH_RATE64,
	/* u32, parts per million of the bandwidth, at most 1000000: the same. 0: the mode's. */
	TCA_CAKE_TIN_THRESH_SHARE,
	/* u32, microseconds: COBALT's target. 0: the default. */
	TCA_CAKE_TIN_TARGET,
	/* u32, microseconds, above the target: COBALT's interval. 0: the default. */
	TCA_CAKE_TIN_INTERVAL,
	/* u32, bytes, at most 1 MiB: how far the tin may run ahead of its threshold after idling. */
	TCA_CAKE_TIN_BURST,
	/* u64, bit n for code point n: what goes to this tin, over the mode's map. 0: nothing. */
	TCA_CAKE_TIN_DSCP,
	/* flag: forget all settings of this tin before those beside it. */
	TCA_CAKE_TIN_RESET,
	TCA_CAKE_TIN_PAD,
	__TCA_CAKE_TIN_MAX
};

#define TCA_CAKE_TIN_MAX (__TCA_CAKE_TIN_MAX - 1)

#endif /* _UAPI_LINUX_PKT_SCHED_CAKE_H */
