#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws what build/experiments/*.json hold, as SVG and PNG beside them."""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402 pylint: disable=wrong-import-position

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "selftests"))

from seed import LIMIT  # noqa: E402 pylint: disable=wrong-import-position

OUT = TESTS.parent / "build/experiments"
COLORS = {"rust": "#b7410e", "c": "#4c72b0"}
NAMES = {"rust": "this module", "c": "C module"}
# What the last of the three games waits for at worst.
LIMIT_MS = LIMIT[-1]
# Where a delay is off the scale, or the stream was lost whole.
OFF_SCALE_MS = 40

pyplot.rcParams.update({
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titlelocation": "left", "svg.hashsalt": "cake",
    "figure.constrained_layout.use": True})


def load(name):
    """The rows of an experiment."""
    return json.loads((OUT / f"{name}.json").read_text(encoding="utf-8"))


def save(figure, name):
    """Writes a figure in both formats."""
    for form in ("svg", "png"):
        figure.savefig(OUT / f"{name}.{form}", dpi=120, metadata={"Date": None} if form == "svg" else None)
    pyplot.close(figure)


def bars(axes, labels, values, colors, form=".1f"):
    """Horizontal bars from top to bottom, each with its value in ms."""
    places = range(len(labels))[::-1]
    axes.barh(places, values, color=colors, height=0.65)
    axes.set_yticks(places, labels)
    for place, value in zip(places, values):
        axes.text(value, place, f" {value:{form}} ms", va="center", fontsize=9)
    axes.set_xlim(0, max(values) * 1.18)


def variants(name, title, limit, key, form):
    """Worst delays of the variants of the seed."""
    rows = load(name)
    figure, axes = pyplot.subplots(figsize=(8, 3.6))
    labels = [f"{row['variant']} · {NAMES[row['module']]}" for row in rows]
    bars(axes, labels, [max(stream["max_ms"] for stream in row["streams"]) for row in rows],
         [COLORS[row["module"]] for row in rows], form)
    if limit:
        axes.axvline(limit, color="black", linewidth=1, linestyle=":")
        axes.text(limit, len(rows) - 0.4, f"limit {limit:.1f} ms", ha="center", fontsize=9)
    transfer = [row[key] for row in rows]
    axes.set_xlabel("worst delay of three game streams in ms\n"
                    f"(the transfer beside them: {min(transfer):.2f} to {max(transfer):.2f} Mbit/s)")
    axes.set_title(title, pad=16)
    save(figure, name)


def seed():
    """The seed on the uplink."""
    variants("seed", "Three games and an upload on 2 Mbit/s", LIMIT_MS, "upload_mbit", ".1f")


def downlink():
    """The seed on the downlink."""
    variants("downlink", "Three games and a download on 40 Mbit/s", None, "download_mbit", ".2f")


def share():
    """Worst delay against Voice's share."""
    rows = load("share")
    figure, axes = pyplot.subplots(figsize=(8, 3.8))
    worst = lambda row: min(max(ms or OFF_SCALE_MS for ms in row["max_ms"]), OFF_SCALE_MS)
    for burst, style in (("one packet", "o-"), ("0", "s--")):
        line = [row for row in rows if row["module"] == "rust" and row["burst"] == burst]
        axes.plot([row["share_percent"] for row in line], [worst(row) for row in line], style,
                  color=COLORS["rust"], label=f"this module, burst {burst}", markersize=5,
                  alpha=1 if burst != "0" else 0.55)
    line = [row for row in rows if row["module"] == "c"]
    axes.plot([row["share_percent"] for row in line], [worst(row) for row in line], "D",
              color=COLORS["c"], label="C module: its one share", markersize=7)
    axes.axhline(LIMIT_MS, color="black", linewidth=1, linestyle=":")
    axes.text(100, LIMIT_MS, f"limit {LIMIT_MS:.1f} ms", ha="right", va="bottom", fontsize=9)
    axes.set_ylim(0, OFF_SCALE_MS * 1.05)
    axes.set_yticks([0, 10, 20, 30, OFF_SCALE_MS], ["0", "10", "20", "30", f"{OFF_SCALE_MS} or more"])
    axes.set_xlabel("Voice's threshold, % of the bandwidth (the three games need 16 %)")
    axes.set_ylabel("worst delay in ms")
    axes.set_title("Three games marked EF beside an upload: how much Voice needs")
    axes.legend(frameon=False)
    save(figure, "share")


def greedy():
    """Who suffers from a greedy marked flow."""
    rows = load("greedy")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.8), sharey=True, width_ratios=[2, 1])
    labels = [f"{'greedy EF' if row['greedy'] else 'none'} · {NAMES[row['module']]}, burst {row['burst']}"
              for row in rows]
    places = range(len(rows))[::-1]
    for offset, (what, color, worst) in zip((0.28, 0, -0.28), (
            ("unmarked games", "#7a7a7a", lambda row: max(s["max_ms"] for s in row["unmarked"])),
            ("sparse EF flow in the same tin", "#c44e52", lambda row: row["sparse_ef"]["max_ms"]))):
        values = [worst(row) or 0 for row in rows]
        left.barh([place + offset / 1.3 for place in places], values, height=0.26, color=color, label=what)
        for place, value in zip(places, values):
            left.text(value, place + offset / 1.3, f" {value:.1f}", va="center", fontsize=8)
    left.set_yticks(places, labels)
    left.set_xlabel("worst delay in ms")
    left.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    left.set_title("What others suffer from a flow at 10 × Voice's threshold")
    lefts = [0.0] * len(rows)
    for key, color in (("upload_mbit", "#8da0cb"), ("greedy_mbit", "#e78ac3")):
        values = [row[key] for row in rows]
        right.barh(places, values, left=lefts, height=0.6, color=color,
                   label=key.removesuffix("_mbit"))
        lefts = [a + b for a, b in zip(lefts, values)]
    right.set_xlabel("Mbit/s")
    right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    save(figure, "greedy")


def target():
    """Delay against throughput as target and interval change."""
    rows = load("target")
    figure, axes = pyplot.subplots(figsize=(8, 4.2))
    tuned = [row for row in rows if row["target_ms"]]
    for interval in sorted({row["interval_ms"] for row in tuned}):
        line = [row for row in tuned if row["interval_ms"] == interval]
        axes.plot([row["mean_rtt_ms"] for row in line], [row["upload_mbit"] for row in line], "o-",
                  label=f"interval {interval} ms", markersize=5)
        for row in line:
            axes.annotate(f"{row['target_ms']}", (row["mean_rtt_ms"], row["upload_mbit"]),
                          textcoords="offset points", xytext=(4, 4), fontsize=8)
    for row in rows:
        if not row["target_ms"]:
            axes.plot(row["mean_rtt_ms"], row["upload_mbit"], "D", color=COLORS[row["module"]],
                      label=f"as preset, {NAMES[row['module']]}", markersize=7)
    axes.set_xlabel("mean round-trip time of the upload in ms (30 ms without a queue)")
    axes.set_ylabel("throughput in Mbit/s")
    axes.set_title("Best Effort's target (beside each point, in ms) and interval at 2 Mbit/s")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
    save(figure, "target")


def hosting():
    """The console that hosts."""
    rows = load("hosting")
    figure, axes = pyplot.subplots(figsize=(8, 2.8))
    labels = [f"{row['words'] or 'as preset'} · {NAMES[row['module']]}\n{row['game']['lost']} packets "
              f"lost, upload {row['upload_mbit']:.2f} Mbit/s" for row in rows]
    bars(axes, labels, [row["game"]["max_ms"] or 0 for row in rows],
         [COLORS[row["module"]] for row in rows])
    axes.set_xscale("log")
    axes.set_xlim(1, 20000)
    axes.set_xlabel("worst delay of the game in ms, logarithmic")
    axes.set_title("A console hosts a game: 700 kbit/s marked EF beside an upload")
    save(figure, "hosting")


def call():
    """The video call."""
    rows = load("call")
    figure, axes = pyplot.subplots(figsize=(8, 3))
    labels = [f"{row['variant']} · {NAMES[row['module']]}" for row in rows]
    places = range(len(rows))[::-1]
    lost = [100 * row["up"]["lost"] / row["up"]["frames"] for row in rows]
    axes.barh(places, lost, color=[COLORS[row["module"]] for row in rows], height=0.65)
    axes.set_yticks(places, labels)
    for place, part, row in zip(places, lost, rows):
        late = row["up"]["p99_ms"]
        text = f" {part:.0f} % lost" + (f", 99 % of the others within {late:.0f} ms" if late else "")
        axes.text(part if part < 50 else 1, place, text, va="center", fontsize=9,
                  color="white" if part >= 50 else "black")
    axes.set_xlim(0, 100)
    axes.set_xlabel("frames of the caller's that did not arrive whole, %")
    axes.set_title("A 1.5 Mbit/s video call beside two uploads on 2 Mbit/s")
    save(figure, "call")


def main():
    """Draws those that were played."""
    for draw in (seed, downlink, share, greedy, target, hosting, call):
        if (OUT / f"{draw.__name__}.json").exists():
            draw()
    print("\n".join(sorted(str(path.relative_to(OUT.parents[1])) for path in OUT.glob("*.svg"))))


if __name__ == "__main__":
    main()
