"""The write-combining buffers of the host model, against a model in Python that keeps bytes and
times in another way.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import random
import subprocess

import pytest

PROFILE = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles" / "gen2x4.toml"
STORE, GAP, BUFFERS = 250, 16_000, 10  # ps, ps and lines: gen2x4.toml, table [window]


@pytest.fixture
def combine(programs):
    """combine([("store", wait, offset, bytes) or ("fence", wait)], buffers): (left, done)."""

    def run(steps, buffers=BUFFERS):
        text = "".join(
            f"store {step[1]} {step[2]} {step[3].hex()}\n"
            if step[0] == "store"
            else f"fence {step[1]} 0 -\n"
            for step in steps
        )
        done = subprocess.run(
            [programs / "combining-bench", PROFILE, f"window.combining_buffers={buffers}"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        left = [
            (at, offset, mask, bytes.fromhex(data)) for at, offset, mask, data in answer["left"]
        ]
        return left, answer["done"]

    return run


def test_whole_lines_leave_16_ns_apart_as_one_tlp_each(combine):
    data = random.Random(1).randbytes(64 * 40)
    left, done = combine([("store", 0, 0, data), ("fence", 0)])
    assert [(offset, mask) for _, offset, mask, _ in left] == [
        (64 * n, (1 << 64) - 1) for n in range(40)
    ]
    assert b"".join(part for *_, part in left) == data
    assert [at for at, *_ in left] == [8 * STORE + GAP * n for n in range(40)]
    assert done[1] == left[-1][0], "the fence waits for the last line"
    assert done[0] == left[29][0] + 7 * STORE, "ten lines wait, the processor for the first"


def test_words_at_a_stride_leave_when_the_eleventh_line_needs_a_buffer(combine):
    steps = [("store", 0, 64 * n, bytes([n] * 8)) for n in range(30)]
    left, done = combine(steps)
    assert [(offset, mask) for _, offset, mask, _ in left] == [(64 * n, 0xFF) for n in range(20)]
    assert left[0][0] == 11 * STORE and done[9] == 10 * STORE
    assert [b[0] - a[0] for a, b in zip(left, left[1:])] == [GAP] * 19
    assert done[29] == left[19][0], "the processor waits for its buffer"


def test_each_pattern_of_enables_leaves_as_it_was_stored(combine):
    steps = []
    for pattern in range(1, 256):
        places = [n for n in range(8) if pattern >> n & 1]
        steps += [("store", 0, 64 * pattern + 8 + n, bytes([n + 1])) for n in places]
        steps.append(("fence", 0))
    left, _ = combine(steps)
    assert [(offset // 64, offset % 64, mask) for _, offset, mask, _ in left] == [
        (pattern, 8, pattern) for pattern in range(1, 256)
    ]
    assert all(data[n] == n + 1 for *_, mask, data in left for n in range(8) if mask >> n & 1)


def expected(steps, buffers):
    """Parts that leave, by a dictionary of lines and a list of the times at which buffers are
    free.
    """
    lines, free, last, now, left, done = {}, [], None, 0, [], []

    def leave(line):
        nonlocal last
        last = now if last is None else max(now, last + GAP)
        free.append(last)
        stored = lines.pop(line)
        if len(stored) == 64:
            left.append((last, line, (1 << 64) - 1, stored))
            return
        for word in range(0, 64, 8):
            part = {place - word: v for place, v in stored.items() if word <= place < word + 8}
            if part:
                left.append((last, line + word, sum(1 << place for place in part), part))

    for step in steps:
        now += step[1]
        if step[0] == "fence":
            for line in list(lines):
                leave(line)
            now = max([now, *free])
            free.clear()
        else:
            at, data = step[2], step[3]
            while data:
                count = min(len(data), 8 - at % 8)
                now += STORE
                line = at - at % 64
                if line not in lines:
                    free[:] = [time for time in free if time > now]
                    if len(lines) == buffers:
                        leave(next(iter(lines)))
                    if len(lines) + len(free) >= buffers:
                        now = max(now, free.pop(0))
                    lines[line] = {}
                lines[line].update({at % 64 + n: data[n] for n in range(count)})
                if len(lines[line]) == 64:
                    leave(line)
                at, data = at + count, data[count:]
        done.append(now)
    return left, done


@pytest.mark.parametrize("buffers", [1, 2, 10])
def test_random_stores_leave_as_the_model_says(combine, seed, buffers):
    choice = random.Random(f"{seed} {buffers}")
    steps = []
    for _ in range(1500):
        wait = choice.choice([0, 0, 0, 100, 5_000, 40_000])
        if choice.random() < 0.03:
            steps.append(("fence", wait))
            continue
        near = choice.choice([64 * 4, 64 * 14, 1 << 20])
        length = choice.choice([1, 2, 4, 8, 8, 8, 24, 64, 64, 200])
        steps.append(("store", wait, choice.randrange(near), choice.randbytes(length)))
    left, done = combine(steps, buffers)
    ours, times = expected(steps, buffers)
    assert done == times and len(left) == len(ours) > 1000
    for (at, offset, mask, data), (when, place, pattern, part) in zip(left, ours):
        assert (at, offset, mask) == (when, place, pattern)
        assert all(data[n] == value for n, value in part.items())
    memory = {}
    for step in steps:
        if step[0] == "store":
            memory.update({step[2] + n: value for n, value in enumerate(step[3])})
    arrived = {}
    for _, offset, mask, data in combine([*steps, ("fence", 0)], buffers)[0]:
        arrived.update({offset + n: data[n] for n in range(len(data)) if mask >> n & 1})
    assert arrived == memory, "every byte once, the newest last"
