"""The cable by itself: every wrong one has its name, its length and errors are measured, and it
heals.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import json
import math

import libdibber
import pytest
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import main, profile
from dibber_cli.link import measure, report, status
from dibber_cli.link.side import Ends
from dibber_cli.simulator import Pair

SIZE = 256 << 10


@contextlib.contextmanager
def cable(*options, name="gen2x4", seed=1):
    """Both ends of a simulated cable."""
    with Pair(profile.load(name), seed=seed, options=options) as pair, Ends(pair.uris) as ends:
        ends.transceivers = measure.transceivers(profile.load(name))
        yield ends


def sleep_until(side, microseconds):
    left = int(microseconds * 1000) - side.now()
    assert left > 0, f"{-left / 1000} µs too late"
    side.sleep(left)


def dibber(capsys, *words):
    """Exit code and JSON of a `dibber link` command."""
    code = main.main(["link", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


# Verdicts -----------------------------------------------------------------------------------------

# Kind of fault, and what each end says while it is on. Between two of them the link is up again.
FAULTS = [
    ("unplugged", "", "NO_SIGNAL", "NO_SIGNAL"),
    ("unplugged", ":1", "NO_SIGNAL", "NOT_HEARD"),
    ("inverted", "", "POLARITY", "POLARITY"),
    ("inverted", ":0", "NOT_HEARD", "POLARITY"),
    ("rate", "", "WRONG_RATE", "WRONG_RATE"),
    ("foreign", "", "NO_COMMA", "NO_COMMA"),
]
FIRST, LASTS, EVERY = 1500, 300, 450  # microseconds


def test_each_wrong_cable_has_its_name_and_the_right_one_comes_up():
    begins = [FIRST + EVERY * n for n in range(len(FAULTS))]
    options = [
        f"--fault={kind}:{begin}:{begin + LASTS}{direction}"
        for begin, (kind, direction, *_) in zip(begins, FAULTS)
    ]
    with cable(*options) as ends:
        for begin, (kind, direction, *reasons) in zip(begins, FAULTS):

            def reason(side, begin=begin):
                sleep_until(side, begin + 10)
                return measure.train(side, 200_000)

            found = ends.both(reason)
            assert [link["reason"] for link, _ in found] == reasons, kind + direction
            assert [time for _, time in found] == [None, None]
            assert all(link["state"] in ("DOWN", "ALIGN") for link, _ in found)
            for _, time in ends.both(lambda side: measure.wait_up(side, 200_000)):
                assert time is not None, kind


def test_a_loopback_is_told_from_a_link(capsys):
    code, result = dibber(capsys, "test", "--fault", "loopback")
    assert code == 1 and not result["pass"]
    assert [link["reason"] for link in result["links"]] == ["LOOPBACK", "LOOPBACK"]
    assert result["verdict"].startswith("No link. Card 0: align: this card hears itself")


def test_a_stop_that_does_not_end_is_told(capsys):
    code, result = dibber(capsys, "test", "--fault", "stop:0:1e6:1")
    assert code == 1 and not result["pass"]
    assert result["verdict"] == "No flow. Card 0: up, the other end stops channels 0, 1, 2, 3."


def test_a_good_cable_passes_with_length_rate_and_no_loss(capsys):
    code, result = dibber(
        capsys, "test", "--length", "20", "--megabytes", "1", "--milliseconds", "0.2"
    )
    assert code == 0 and result["pass"]
    assert all(abs(metres - 20) <= 1 for metres in result["metres"])
    assert all(
        e["locked"] and e["errors"] == 0 and e["bits"] > 0.9 * 0.2e-3 * 5e9
        for e in result["bit_errors"]
    )
    assert result["rate"]["mb_per_s"] > 450 and result["rate_stop"]["mb_per_s"] > 50
    assert all(abs(time - 140) <= 4 for time in result["transceivers_ns"])
    assert result["stops"] > 0 and result["packets_sent"] == result["packets_received"] > 250
    assert result["verdict"].startswith("Good: ")


def test_status_says_what_the_link_does(capsys):
    with Pair(profile.load("gen2x4"), participants=1) as pair:
        # Time goes on while the command reads registers, so that the link comes up in the course of
        # a few.
        states = []
        while "UP" not in states and len(states) < 50:
            code, result = dibber(capsys, "status", pair.uris[0])
            assert code == (0 if result["state"] == "UP" else 1)
            states.append(result["state"])
        assert states[-1] == "UP" and set(states) <= {"DOWN", "ALIGN", "UP"}
        assert set(result) >= {
            "reason",
            "signal",
            "stopped",
            "nonce",
            "peer",
            "slack_high",
            "counters",
        }


# Measurements -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metres", [0, 3, 50])
def test_length_is_right_within_a_metre(metres):
    with cable(f"--set=link.length_m={metres}") as ends:
        ends.both(measure.wait_up)
        for nanoseconds in ends.both(measure.round_trip):
            found, doubt = measure.cable_length(
                nanoseconds, ends.transceivers, ends.sides[0].clock_hz
            )
            assert abs(found - metres) <= doubt <= 1


def prbs(ends, nanoseconds, sequence="PRBS31"):
    """(words, wrong symbols, locked) at both cards."""
    ends.both(lambda side: measure.prbs_settle(side, measure.sequence_of(sequence)))
    found = ends.both(
        lambda side: measure.prbs_count(side, measure.sequence_of(sequence), nanoseconds)
    )
    ends.both(measure.prbs_stop)
    return found


def test_prbs_finds_the_bit_error_rate_of_the_cable(seed):
    rate = 1e-5
    with cable("--ber", str(rate), seed=seed) as ends:
        for words, wrong, locked in prbs(ends, 1_000_000):
            expected = words * measure.BITS_WORD * rate
            # A one bit error makes one symbol wrong; once in a while two fall into one symbol,
            # which five sigma cover.
            assert locked and words > 120_000 and abs(wrong - expected) < 5 * math.sqrt(expected)
            assert measure.bit_errors(words, wrong)["rate_below"] > rate * 0.9


def test_loopbacks_carry_the_sequence_back():
    sequence = measure.sequence_of("PRBS23")
    with cable("--fault", "unplugged:1200:1500") as ends:

        def near(side):
            sleep_until(side, 1250)  # the cable is out, and nothing is missing
            control = measure.field("LINK_CONTROL", transmit=sequence, check=sequence, near=1)
            side.card.write_register("LINK_CONTROL", control)
            side.sleep(50_000)
            return measure.prbs_result(side)

        for words, wrong, locked in ends.both(near):
            assert locked and not wrong and words > 5_000

        def far_end(side):
            sleep_until(side, 1600)
            side.card.write_register("LINK_CONTROL", measure.field("LINK_CONTROL", far=1))
            side.sleep(150_000)
            side.card.write_register("LINK_CONTROL", 0)

        def this_end(side):
            sleep_until(side, 1620)
            measure.prbs_start(side, sequence)
            side.sleep(100_000)
            return measure.prbs_result(side)

        (words, wrong, locked), _ = ends.both(this_end, far_end)
        assert locked and not wrong and words > 10_000
        assert all(time is not None for _, time in ends.both(measure.wait_up))


def test_in_its_transceivers_loopback_a_card_hears_itself_and_the_other_end_nothing():
    with cable() as ends:
        ends.both(measure.wait_up)
        nonces = ends.both(lambda side: side.card.read_register("LINK_NONCE"))

        def watch(side):
            side.sleep(60_000)
            return status.read_state(side.card)

        (words, wrong, locked), seen = ends.both(
            lambda side: measure.prbs_alone(side, "phy", measure.sequence_of("PRBS31"), 60_000),
            watch,
        )
        assert locked and not wrong and words > 7_000
        assert (seen["state"], seen["reason"], seen["signal"]) == ("DOWN", "NO_SIGNAL", False)
        assert all(time is not None for _, time in ends.both(measure.wait_up))
        assert ends.both(lambda side: side.card.read_register("LINK_NONCE")) == nonces


@pytest.mark.parametrize(
    "loopback, fault, cards", [("near", "unplugged", 2), ("phy", "unplugged", 2), ("far", None, 1)]
)
def test_prbs_through_each_loopback(loopback, fault, cards, capsys):
    code, result = dibber(
        capsys,
        "prbs",
        "--loopback",
        loopback,
        "--milliseconds",
        "0.05",
        *(("--fault", fault) if fault else ()),
    )
    assert code == 0 and result["loopback"] == loopback and len(result["cards"]) == cards
    assert all(
        card["locked"] and card["errors"] == 0 and card["bits"] > 200_000
        for card in result["cards"]
    )


def test_a_transceiver_without_a_loopback_of_its_own_is_told(monkeypatch, capsys):
    monkeypatch.setattr(measure, "hears_itself", lambda side: False)
    assert main.main(["link", "prbs", "--loopback", "phy", "--json"]) != 0
    assert "card 0 and 1: the transceiver has no loopback" in capsys.readouterr().err


def test_a_cable_that_is_out_is_told_from_a_transceiver_that_is_dead(capsys):
    code, result = dibber(capsys, "test", "--fault", "unplugged")
    assert code == 1 and [link["reason"] for link in result["links"]] == ["NO_SIGNAL", "NO_SIGNAL"]
    assert all(card["locked"] and card["errors"] == 0 for card in result["phy_loopback"])
    assert result["verdict"].endswith(
        "hears itself without error: look at the cable and its plugs."
    )


def test_transceivers_that_are_not_the_profiles_are_measured():
    with cable("--set=link.transmit_ns=130", "--set=link.length_m=20") as ends:
        tester = report.Tester(ends, ends.transceivers, 1, lambda step: None)
        assert tester.training()
        tester.transceivers()
        tester.length()
        assert all(abs(time - 210) <= 4 for time in tester.result["transceivers_ns"])
        assert all(
            abs(metres - 20) <= tester.result["metres_doubt"] <= 1.6
            for metres in tester.result["metres"]
        )


# Healing ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def transfer(ends, total=SIZE):
    """Has run(during): card 0 puts `total` bytes to card 1 and does `during` after half of the
    time; all must arrive.
    """

    def target(side):
        side.memory = libdibber.alloc(total)
        side.region = side.endpoint.register(side.memory, RIGHT.REMOTE_WRITE)
        return side.region.key

    _, key = ends.both(measure.wait_up, target)
    data = measure.pattern(total)

    def put(side, during):
        memory = libdibber.alloc(total)
        memory[:] = data
        region = side.endpoint.register(memory, RIGHT.LOCAL_READ)
        side.endpoint.put(region.key, 0, key, 0, total, node=1)
        side.sleep(total)  # nanoseconds: half of it, at 0.5 bytes in one
        assert not side.endpoint.poll()
        during(side)
        while not (done := side.endpoint.poll()):
            assert side.endpoint.wait(100_000_000), "it hangs"
        region.close()
        return STATUS.name_of(done[0].status)

    def run(during):
        before = [look["counters"] for look in ends.both(measure.counters)]
        ended, _ = ends.both(lambda side: put(side, during), lambda side: None)
        _, wrong = ends.both(lambda side: None, lambda side: int((side.memory != data).sum()))
        after = [look["counters"] for look in ends.both(measure.counters)]
        assert ended == "OK" and wrong == 0
        return [{name: a[name] - b[name] for name in a} for a, b in zip(after, before)]

    yield run


CRC = ("header_crc_error", "payload_crc_error")
LOST = (*CRC, "packet_truncated")


def test_an_injected_error_is_one_error_of_the_crc_and_repaired():
    with cable() as ends, transfer(ends) as run:
        source, target = run(
            lambda side: side.card.write_register(
                "LINK_COMMAND", measure.field("LINK_COMMAND", error=1)
            )
        )
        assert sum(target[name] for name in CRC) == 1 and not target["packet_truncated"]
        assert target["naks_sent"] == 1 and source["naks_received"] == 1
        assert not any(
            side[name]
            for side in (source, target)
            for name in ("code_errors", "disparity_errors", "link_lost")
        )


def test_training_again_in_a_transfer_loses_nothing():
    with cable() as ends, transfer(ends) as run:
        source, target = run(
            lambda side: side.card.write_register(
                "LINK_COMMAND", measure.field("LINK_COMMAND", retrain=1)
            )
        )
        assert source["link_lost"] == source["link_trained"] == 1
        assert target["link_lost"] == target["link_trained"] == 1


# At 62.5 MHz the heartbeat takes twice as long: tests/gateware/link/test_training.py.
@pytest.mark.parametrize("name", ["gen2x4", "gen2x1"])
@pytest.mark.parametrize("kind, reason", [("unplugged", "NO_SIGNAL"), ("foreign", "SILENCE")])
def test_a_dead_cable_is_known_within_100_microseconds(name, kind, reason, figure):
    """Without signal, and with foreign symbols: the heartbeat."""
    begin = 1500
    with cable("--fault", f"{kind}:{begin}:1e6", name=name) as ends:

        def known(side):
            assert measure.wait_up(side)[1] is not None
            sleep_until(side, begin)
            while (link := status.read_state(side.card))["state"] == "UP":
                side.sleep(1_000)
            return side.now() / 1000 - begin, link["reason"]

        found = ends.both(known)
        assert [why for _, why in found] == [reason, reason]
        assert figure(
            f"link-dead-{kind}-{name}",
            round(max(time for time, _ in found), 1),
            "µs until a dead cable is known",
            at_most=100,
            profile=name,
        )


# Reach of flow control ----------------------------------------------------------------------------


@pytest.mark.fault
def test_a_cable_longer_than_flow_control_reaches_is_named_as_such(capsys):
    assert main.main(["link", "test", "--length", "100", "--megabytes", "1"]) == 1
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert (
        "the cable of 99.2 m is longer than STOP and GO reach" in verdict
        and "damaged" not in verdict
    )
