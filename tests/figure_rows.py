"""Rows of `make figures`: values from the reports of benchmarks, with their targets.

A row is {id, value, unit, target, pass, command, profile, seed}; a row from a point of a report
has the place of the point (`at`) and its limit (`limited_by`).
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.bench.patterns import all_messages

NO_GOAL = "none: for comparison"  # the target of a row that has no goal


def row(name, value, unit, sign, limit, command, profile, seed):
    passed = value >= limit if sign == ">=" else value <= limit
    return {
        "id": name,
        "value": value,
        "unit": unit,
        "target": f"{sign} {limit:g}",
        "pass": passed,
        "command": " ".join(command),
        "profile": profile,
        "seed": seed,
    }


# What is read off a report ------------------------------------------------------------------------


def points(report, series):
    return [p for p in report["points"] if p["series"] == series]


def value_at(report, series, x):
    return next(p for p in points(report, series) if p["x"] == x)


def least(found):
    return min(found, key=lambda p: p["value"])


def share(point):
    """Percent of its bound."""
    return round(100 * point["value"] / point["bound"], 1)


def least_share(found):
    return min(found, key=share)


def strided(report, series):
    return [p for p in points(report, series) if p["x"] > 1]


class Rows:
    """Rows of one report: all have its command, profile and seed."""

    def __init__(self, report):
        self.report, self.rows = report, []
        self.stem = f"{report['test']}-{report['profile']}"

    def add(self, name, value, unit, sign, limit, point=None):
        """`point`: of the report, the source of the value; it gives place and limit."""
        made = row(
            f"{self.stem}-{name}",
            value,
            unit,
            sign,
            limit,
            [self.report["command"]],
            self.report["profile"],
            self.report["seed"],
        )
        if point:
            made["at"], made["limited_by"] = point["x"], point["limited_by"]
        self.rows.append(made)

    def compare(self, name, value, unit):
        """A figure without a goal, which others are compared with."""
        self.add(name, value, unit, ">=", 0)
        self.rows[-1]["target"] = NO_GOAL

    def add_bytes_wrong(self):
        compared = f"of {self.report['bytes_compared']} compared"
        self.add("bytes-wrong", self.report["bytes_wrong"], compared, "<=", 0)


def compare_unpacking(rows, report):
    """The row of contiguous puts that the receiving CPU unpacks, at a stride of 64."""
    unpack = value_at(report, "put-contiguous-unpack", 64)
    percent = f"{unpack['cpu_percent']:.1f} % of the receiving CPU"
    rows.compare("unpack-at-64", unpack["value"], f"MB/s, {percent}")


def of_stride(report):
    """gen2x4: megabytes a second. Every profile: shares of the bound."""
    rows = Rows(report)
    destination, source, both = (
        strided(report, f"put-{side}-strided") for side in ("dst", "src", "both")
    )
    if report["profile"] == "gen2x4":
        contiguous = value_at(report, "put-dst-strided", 1)
        rows.add("contiguous", contiguous["value"], "MB/s", ">=", 470, contiguous)
        rows.add(
            "dst-strided-least", least(destination)["value"], "MB/s", ">=", 423, least(destination)
        )
        rows.add("src-strided-least", least(source)["value"], "MB/s", ">=", 376, least(source))
        compare_unpacking(rows, report)
        descriptors = value_at(report, "descriptors", 64)
        rows.compare("descriptors-at-64", descriptors["value"], "MB/s")
    else:
        rows.add(
            "dst-strided-of-bound",
            share(least_share(destination)),
            "%",
            ">=",
            90,
            least_share(destination),
        )
        rows.add(
            "src-strided-of-bound", share(least_share(source)), "%", ">=", 80, least_share(source)
        )
    rows.add("both-strided-of-bound", share(least_share(both)), "%", ">=", 80, least_share(both))
    return rows.rows


def of_wide(contiguous, strides):
    """Profile gen3x8, shares of the bound: one report of long contiguous puts, one of strides."""
    longest = Rows(contiguous)
    point = value_at(contiguous, "put-dst-strided", 1)
    longest.add("contiguous-of-bound", share(point), "%", ">=", 95, point)
    longest.compare("litepcie-dma", value_at(contiguous, "litepcie-dma", 1)["value"], "MB/s")
    rows = Rows(strides)
    for side in ("dst", "src", "both"):
        point = least_share(strided(strides, f"put-{side}-strided"))
        rows.add(f"{side}-strided-of-bound", share(point), "%", ">=", 85, point)
        point = value_at(strides, f"put-{side}-strided", 64)
        rows.compare(f"{side}-strided-at-64", point["value"], "MB/s")
    compare_unpacking(rows, strides)
    descriptors = value_at(strides, "litepcie-descriptors", 64)
    rows.compare("litepcie-descriptors-at-64", descriptors["value"], "MB/s")
    return [*longest.rows, *rows.rows]


def of_block(report):
    """N½: a series that begins above half of its peak has it below the smallest size."""
    rows, halves = Rows(report), report["half_size_bytes"]
    for name, limit in (
        ("put", 256),
        ("put-one-at-a-time", 1024),
        ("put-inline", 256),
        ("put-inline-one-at-a-time", 1024),
    ):
        smallest = min(p["x"] for p in points(report, name))
        rows.add(
            f"half-size-{name}",
            halves[name] or smallest,
            "bytes",
            "<=",
            limit,
            value_at(report, name, smallest),
        )
    return rows.rows


def of_bidir(report):
    rows, worst = Rows(report), report["worst"]
    rows.add("contiguous-of-one-way", worst["contiguous"]["percent_of_one_way"], "%", ">=", 90)
    rows.add(
        "dst-strided-of-one-way", worst["put-dst-strided"]["percent_of_one_way"], "%", ">=", 85
    )
    rows.add("both-strided-of-bound", worst["put-both-strided"]["percent_of_bound"], "%", ">=", 80)
    return rows.rows


def of_element(report):
    rows = Rows(report)
    rows.add_bytes_wrong()
    return rows.rows


def of_soak(report):
    rows = Rows(report)
    compared = report["bytes_compared"] + report["guard_bytes_compared"]
    rows.add(
        "bytes-wrong", report["bytes_wrong"], f"of {compared} compared, on a bad cable", "<=", 0
    )
    return rows.rows


def of_link(report):
    """The share of payload at every cable length; no byte is wrong at any bit error rate."""
    rows = Rows(report)
    rows.add(
        "payload-share-least",
        least(points(report, "payload-share"))["value"],
        "% of the words",
        ">=",
        97,
        least(points(report, "payload-share")),
    )
    rows.add_bytes_wrong()
    return rows.rows


def of_latency(report):
    rows = Rows(report)
    for series, most in (("fastpath", 1.2), ("mcp", 2.0)):
        idle, loaded = (
            value_at(report, name, 50)["value"] for name in (series, f"{series}-under-bulk")
        )
        rows.add(series, idle, "us, median", "<=", most, value_at(report, series, 50))
        rows.add(f"{series}-under-bulk", round(loaded / idle, 2), "times the idle median", "<=", 2)
    for series in ("fastpath-get", "fastpath-fetch-add", "mcp-get", "mcp-fetch-add"):
        median = value_at(report, series, 50)["value"]
        rows.compare(series, median, "us, median, from the call to its completion")
    return rows.rows


def of_rate(report):
    rows = Rows(report)
    for series in ("fastpath", "mcp"):
        best = max(points(report, series), key=lambda p: p["value"])
        rows.add(series, best["value"], "million messages/s, one queue", ">=", 1.0, best)
    return rows.rows


def of_patterns(report):
    """gen2x4: vectors against contiguous. Every profile: each kind against its bound."""
    rows = Rows(report)
    lists = {message.name for message in all_messages() if message.by_index}
    direct = points(report, "direct")
    of_contiguous = report["of_contiguous"]
    vectors = [p for p in direct if p["x"] not in lists]
    if report["profile"] == "gen2x4":
        worst = min(vectors, key=lambda p: of_contiguous[p["x"]])
        share_ = round(100 * of_contiguous[worst["x"]], 1)
        rows.add("vectors-of-contiguous", share_, "%", ">=", 97, worst)
    for kind, found, goal in (
        ("vectors", vectors, 95),
        ("lists", [p for p in direct if p["x"] in lists], 90),
    ):
        worst, all_ = least_share(found), len(found)
        reached = sum(share(p) >= goal for p in found)
        rows.add(f"{kind}-of-bound", share(worst), "%", ">=", goal, worst)
        rows.add(f"{kind}-at-{goal}", reached, f"of {all_} {kind}", ">=", all_)
    rows.add_bytes_wrong()
    return rows.rows


def of_window(report):
    """Stores of the processor through the remote window, and the times of one access."""
    rows = Rows(report)
    stores = points(report, "window-store")
    dense = [p for p in stores if p["x"] == 1] + points(report, "window-memcpy")
    gaps = least_share([p for p in stores if p["x"] > 1])
    rows.add("contiguous-of-bound", share(least_share(dense)), "%", ">=", 90, least_share(dense))
    rows.add("strided-of-bound", share(gaps), "%", ">=", 90, gaps)
    for series, most in (("remote-store", 1.1), ("remote-load", 2.2), ("barrier", 1.2)):
        median = value_at(report, series, 50)["value"]
        rows.add(series, median, "us, median, at 3 m", "<=", most)
    rows.add_bytes_wrong()
    return rows.rows


READERS = {
    "stride": of_stride,
    "block": of_block,
    "bidir": of_bidir,
    "element": of_element,
    "latency": of_latency,
    "rate": of_rate,
    "link": of_link,
    "soak": of_soak,
    "patterns": of_patterns,
    "window": of_window,
}
