"""Simulated time: its holders, its steps, and its repeatability on any machine."""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import pathlib
import random
import struct
import threading
import time
import tomllib

import pytest

from tests.system.host_model.vfio_client import CLOCK, NEVER, Client, ClockReply, Refused

HIGH = 0x10_0000_0000
POKE = 0x80000
NS = 1000
PROFILE = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles" / "gen2x4.toml"
CPU, COPY = (tomllib.loads(PROFILE.read_text())[table] for table in ("cpu", "benchmark"))


def poke(client, address, value, delay=0):
    client.write(POKE, struct.pack("<QII", address, value, delay))


@pytest.fixture
def one(simulator):
    return simulator("--cards", 1, "--participants", 1)


# One participant ----------------------------------------------------------------------------------


def test_time_stands_while_the_program_runs(one):
    client = Client(one.path(0))
    before = client.clock("NOW").now
    time.sleep(0.3)
    assert client.clock("NOW").now == before


def test_each_call_is_charged_its_cost_in_the_profile(one):
    client = Client(one.path(0))
    total = 0
    for call, key in [
        ("PUT", "put_ns"),
        ("PUT_STRIDED", "put_strided_ns"),
        ("POLL_EMPTY", "poll_empty_ns"),
        ("POLL_ENTRY", "poll_entry_ns"),
        ("MAILBOX_SEND", "mailbox_send_ns"),
        ("MAILBOX_RECEIVE", "mailbox_receive_ns"),
        ("MAILBOX_EMPTY", "mailbox_empty_ns"),
    ]:
        before = client.clock("NOW").now
        reply = client.charge(call, 3)
        total += round(3 * CPU[key] * NS)
        assert reply.now - before == round(3 * CPU[key] * NS)
        assert reply.cpu == total
        assert reply.free == 0


def test_instructions_of_the_program_take_time_by_the_rate_of_the_cpu(one):
    client = Client(one.path(0))
    before = client.clock("NOW").now
    reply = client.clock("CHARGE", call=0, count=9000)
    assert reply.now - before == reply.cpu == round(9000 / 4.5 * NS)


@pytest.mark.parametrize(
    "length, near", [(0, None), (1, 0), (64, 0), (65, 1), (1 << 20, (1 << 14) - 1)]
)
def test_a_copy_is_charged_by_its_lines(one, length, near):
    client = Client(one.path(0))
    reply = client.charge("COPY", length)
    wanted = (
        0
        if near is None
        else 2 * near * COPY["copy_line_ns"] + COPY["copy_far_load_ns"] + COPY["copy_far_store_ns"]
    )
    assert reply.cpu == round(wanted * NS)


@pytest.mark.parametrize("deadline", [0, 1, 999, 1_000_000, 123_456_789])
def test_a_wait_ends_at_its_deadline(one, deadline):
    client = Client(one.path(0))
    client.charge("PUT")
    before = client.clock("NOW").now
    reply = client.wait(deadline=deadline)
    assert (reply.now - before, reply.woken) == (deadline, 0)


def test_a_register_read_takes_its_way_there_and_back(one):
    client = Client(one.path(0))
    client.read(0, 4)
    before = client.clock("NOW").now
    client.read(0, 4)
    elapsed = client.clock("NOW").now - before
    # 200 ns each way, and the card's cycles: at most one to the next edge, one for each beat, one
    # to answer.
    assert 400 * NS < elapsed <= 400 * NS + 5 * 8 * NS


def test_a_register_write_happens_at_the_participants_own_time(one):
    def arrival(charges):
        client = Client(one.path(0))
        client.bus_master()
        client.map_shared(HIGH, 4096)
        # Start each time on the same phase of the card's clock.
        client.wait(deadline=8 * NS - client.clock("NOW").now % (8 * NS))
        before = client.clock("NOW").now
        client.charge("PUT", charges)
        poke(client, HIGH, 1)
        reply = client.wait(HIGH, 4)
        assert reply.woken
        client.close()
        return reply.now - before

    assert arrival(10) - arrival(2) == 8 * round(CPU["put_ns"] * NS)


def test_a_wait_ends_when_the_write_is_visible_and_not_before(one):
    client = Client(one.path(0))
    client.bus_master()
    memory = client.map_shared(HIGH, 4096)
    poke(client, HIGH + 8, 5, delay=1000)
    reply = client.wait(HIGH + 8, 4, deadline=20_000 * NS)
    assert reply.woken and memory[8] == 5
    poke(client, HIGH + 8, 6, delay=1000)
    assert client.wait(HIGH + 8, 4, deadline=7_000 * NS).woken == 0
    assert memory[8] == 5, "the write would come after 8 µs"
    assert client.wait(HIGH + 8, 4, deadline=7_000 * NS).woken == 1
    assert memory[8] == 6


@pytest.mark.parametrize(
    "watch, length, woken",
    [(8, 4, 1), (11, 1, 1), (12, 4, 0), (0, 8, 0), (0, 9, 1), (0, 4096, 1), (8, 0, 0)],
)
def test_a_wait_ends_for_writes_into_its_range_only(one, watch, length, woken):
    client = Client(one.path(0))
    client.bus_master()
    client.map_shared(HIGH, 4096)
    poke(client, HIGH + 8, 5)
    assert client.wait(HIGH + watch, length, deadline=5_000 * NS).woken == woken


def test_a_write_while_the_participant_was_charged_still_wakes_it(one):
    client = Client(one.path(0))
    client.bus_master()
    client.map_shared(HIGH, 4096)
    poke(client, HIGH, 5)
    before = client.clock("NOW").now
    # The write lands after half a microsecond, in the middle of what this program is charged.
    client.charge("PUT", 100)
    reply = client.wait(HIGH, 4, deadline=1_000_000 * NS)
    assert reply.woken and reply.now - before == round(100 * CPU["put_ns"] * NS)


@pytest.mark.parametrize(
    "request_, error",
    [
        (dict(op="CHARGE", call=99, count=1), errno.EINVAL),
        (dict(op="WAIT", watch=NEVER, length=2), errno.EINVAL),
        (dict(op="JOIN"), errno.EEXIST),
        (dict(op="JOIN", endpoint=8), errno.EINVAL),
        (dict(op="NOW", endpoint=3), errno.ENOTCONN),
        (dict(op="ENTER"), errno.EBUSY),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(one, request_, error):
    client = Client(one.path(0))
    before = client.clock("NOW").now
    with pytest.raises(Refused) as refused:
        client.clock(**request_)
    assert refused.value.errno == error
    assert client.clock("NOW").now == before
    assert client.read(0, 4) == bytes(4)


def test_registers_are_refused_before_the_first_join(one):
    client = Client(one.path(0), join=())
    with pytest.raises(Refused) as refused:
        client.read(0, 4)
    assert refused.value.errno == errno.ENOTCONN
    client.clock("JOIN")
    assert client.read(0, 4) == bytes(4)


# Several ------------------------------------------------------------------------------------------


def test_the_run_starts_when_the_stated_number_has_joined(simulator):
    sim = simulator("--participants", 2)
    first = Client(sim.path(0))
    waiting = first.send_clock("WAIT", deadline=1000 * NS)
    first.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        first.receive()
    second = Client(sim.path(1))
    second.send_clock("WAIT")
    first.socket.settimeout(600)
    assert first.answer(waiting)


def test_time_waits_for_the_slowest(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    waiting = first.send_clock("WAIT", deadline=1000 * NS)
    first.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        first.receive()
    second.wait(deadline=400 * NS)
    with pytest.raises(TimeoutError):
        first.receive()
    second.send_clock("WAIT")
    first.socket.settimeout(600)
    assert first.answer(waiting)


def test_two_endpoints_of_one_connection_have_their_own_times(one):
    client = Client(one.path(0), join=(0, 3))
    client.charge("PUT", 10, endpoint=3)
    assert client.clock("NOW", 3).now - client.clock("NOW", 0).now == round(10 * CPU["put_ns"] * NS)
    long = client.send_clock("WAIT", 0, deadline=2000 * NS)
    short = client.send_clock("WAIT", 3, deadline=100 * NS)
    assert client.receive()[0] == short
    client.send_clock("WAIT", 3)
    assert client.receive()[0] == long


def program(client, rng, log, barrier):
    """What a program could do: compute, write registers, wait for memory; leave to meet its peer,
    and enter.
    """
    client.bus_master()
    memory = client.map_shared(HIGH, 4096)
    for round_ in range(30):
        time.sleep(rng.random() * 0.004)  # computing: takes wall time, no simulated time
        client.charge("PUT", round_ % 5 + 1)
        poke(client, HIGH + 4 * round_, round_ + 1, delay=37 * round_)
        reply = client.wait(HIGH + 4 * round_, 4, deadline=100_000 * NS)
        log.append((reply.now, reply.woken, reply.cpu, memory[4 * round_]))
        client.read(0x80 + 8 * round_, 4)
        log.append(client.clock("NOW").now)
        if round_ == 15:
            client.clock("LEAVE")
            barrier.wait(600)
            time.sleep(rng.random() * 0.01)
            log.append(("entered", client.clock("ENTER").now))
    client.close()


@pytest.fixture
def run_two(simulator):
    def run(seed, *arguments, profile="gen2x4"):
        sim = simulator("--participants", 2, "--exit-when-done", *arguments, profile=profile)
        rng, logs, barrier = random.Random(seed), [[], []], threading.Barrier(2)
        clients = [None, None]
        order = [0, 1]
        rng.shuffle(order)
        for n in order:
            clients[n] = Client(sim.path(n))
        threads = [
            threading.Thread(
                target=program, args=(clients[n], random.Random(rng.random()), logs[n], barrier)
            )
            for n in order
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        statistics = sim.ended()
        assert len(logs[0]) == len(logs[1]) == 61
        for key in ("wall_seconds", "cpu_seconds", "cycles_per_second_per_card"):
            del statistics[key]
        return logs, statistics

    return run


def test_two_programs_repeat_to_the_picosecond_whatever_their_wall_time(run_two):
    first = run_two(1)
    assert run_two(2) == first
    assert run_two(3, "--threads", 1) == first


def test_another_profile_gives_other_times(run_two):
    assert run_two(1, profile="gen2x1")[0] != run_two(1)[0]


def test_time_stops_when_all_have_left_and_goes_on_when_all_are_back(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    at = [first.clock("LEAVE").now, second.clock("LEAVE").now]
    time.sleep(0.2)
    entering = first.send_clock("ENTER")
    first.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        first.receive()
    assert second.clock("ENTER").now == at[1]
    first.socket.settimeout(600)
    assert ClockReply(first.answer(entering)).now == at[0]


def test_a_participant_that_left_does_not_hold_time(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    first.clock("LEAVE")
    before = second.clock("NOW").now
    assert second.wait(deadline=5000 * NS).now - before == 5000 * NS
    assert first.clock("ENTER").now >= before + 5000 * NS


def test_a_participant_that_goes_does_not_hold_time(simulator):
    sim = simulator("--participants", 2, "--exit-when-done")
    first, second = Client(sim.path(0)), Client(sim.path(1))
    first.close()
    assert second.wait(deadline=5000 * NS)
    second.close()
    assert sim.ended()["cycles"] > 0


def test_a_free_client_is_told_of_in_every_reply(simulator):
    sim = simulator("--participants", 2)
    clocked, free = Client(sim.path(0)), Client(sim.path(1), clock=False)
    reply = clocked.wait(deadline=5000 * NS)
    assert reply.free == 1
    free.close()


def test_the_watchdog_names_the_holder_of_the_clock(simulator):
    sim = simulator("--participants", 2, "--watchdog", 1)
    first, _second = Client(sim.path(0)), Client(sim.path(1), join=(2,))
    first.send_clock("WAIT")
    until = time.monotonic() + 60
    while not sim.error_text() and time.monotonic() < until:
        time.sleep(0.1)
    assert "card1 endpoint 2 runs outside the library" in sim.error_text()


# Who comes and goes -------------------------------------------------------------------------------


def ends(client, message):
    """Whether the answer to a request comes, which has a minute of the machine's time."""
    client.socket.settimeout(60)
    return ClockReply(client.answer(message))


def does_not_end(client):
    client.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.receive()
    client.socket.settimeout(60)


@pytest.mark.fault
@pytest.mark.parametrize("participants", [0, 1, 2])
def test_a_newcomer_starts_time_again_that_all_others_have_left(simulator, participants):
    sim = simulator("--participants", participants)
    first = Client(sim.path(0))
    first.clock("LEAVE")
    newcomer = Client(sim.path(1))
    before = newcomer.clock("NOW").now
    assert ends(newcomer, newcomer.send_clock("WAIT", deadline=5000 * NS)).now == before + 5000 * NS


@pytest.mark.fault
def test_a_newcomer_of_the_same_card_starts_time_again_too(one):
    client = Client(one.path(0))
    client.clock("LEAVE")
    client.clock("JOIN", 3)
    assert ends(client, client.send_clock("WAIT", 3, deadline=5000 * NS)).woken == 0


@pytest.mark.fault
def test_time_stands_again_when_the_newcomer_has_left_or_gone(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    for client in (first, second):
        client.clock("LEAVE")
    first.clock("JOIN", 2)
    ends(first, first.send_clock("WAIT", 2, deadline=5000 * NS))
    at = first.clock("LEAVE", 2, count=1).now
    time.sleep(0.2)
    returning = [client.send_clock("ENTER") for client in (first, second)]
    assert ends(second, returning[1]).now == ends(first, returning[0]).now <= at + 2


@pytest.mark.fault
def test_a_client_without_the_clock_starts_time_again_too(simulator):
    sim = simulator("--participants", 0)
    first = Client(sim.path(0))
    before = first.clock("LEAVE").now
    free = Client(sim.path(1), clock=False)
    free.socket.settimeout(60)
    assert free.read(0, 4) == bytes(4)
    assert first.clock("ENTER").now > before
    free.close()


# One thread with two cards ------------------------------------------------------------------------


def two_cards(simulator, participants=1):
    """Both cards opened by thread 7, one after the other."""
    sim = simulator("--participants", participants)
    clients = []
    for n in range(2):
        clients.append(Client(sim.path(n), join=()))
        clients[n].clock("JOIN", thread=7)
        clients[n].socket.settimeout(60)
        assert clients[n].read(0, 4) == bytes(4), "a read needs time"
    return sim, *clients


@pytest.mark.fault
@pytest.mark.parametrize("participants", [0, 1])
def test_one_thread_opens_both_cards_reads_both_and_waits_on_either(simulator, participants):
    _, first, second = two_cards(simulator, participants)
    for client in (first, second, first, second):
        before = client.clock("NOW", thread=7).now
        assert (
            ends(client, client.send_clock("WAIT", deadline=3000 * NS, thread=7)).now
            == before + 3000 * NS
        )
        assert client.read(0, 4) == bytes(4)


@pytest.mark.fault
def test_time_stands_while_the_thread_with_two_cards_computes(simulator):
    _, first, second = two_cards(simulator)
    ends(second, second.send_clock("WAIT", deadline=3000 * NS, thread=7))
    before = [client.clock("NOW", thread=7).now for client in (first, second)]
    time.sleep(0.3)
    assert [client.clock("NOW", thread=7).now for client in (first, second)] == before


@pytest.mark.fault
def test_a_thread_has_one_time_on_both_its_cards(simulator):
    _, first, second = two_cards(simulator)
    first.charge("PUT", 100)
    charged = first.clock("NOW", thread=7)
    assert second.clock("NOW", thread=7).now == charged.now
    assert second.clock("NOW", thread=7).cpu == 0, "CPU time stays that of the card's calls"
    second.charge("PUT", 10)
    second.clock("NOW", thread=7)
    assert first.clock("NOW", thread=7).now - charged.now == 10 * round(CPU["put_ns"] * NS)


@pytest.mark.fault
def test_another_thread_still_holds_time_and_so_does_a_card_that_it_takes_over(simulator):
    _, first, second = two_cards(simulator)
    second.clock("NOW", thread=8)
    waiting = first.send_clock("WAIT", deadline=3000 * NS, thread=7)
    does_not_end(first)
    second.send_clock("WAIT", deadline=1000_000 * NS, thread=8)
    assert ends(first, waiting)


@pytest.mark.fault
def test_a_thread_that_takes_the_place_of_another_one_takes_over_both_its_cards(simulator):
    _, first, second = two_cards(simulator)
    for thread in (8, 9, 7):
        for client in (first, second):
            assert ends(client, client.send_clock("WAIT", deadline=3000 * NS, thread=thread))
            assert client.read(0, 4) == bytes(4)


@pytest.mark.fault
def test_two_threads_that_take_over_a_card_each_hold_time_for_their_own_ones(simulator):
    _, first, second = two_cards(simulator)
    assert ends(first, first.send_clock("WAIT", deadline=3000 * NS, thread=8))
    second.clock("NOW", thread=9)
    waiting = first.send_clock("WAIT", deadline=3000 * NS, thread=8)
    does_not_end(first)
    long = second.send_clock("WAIT", deadline=1000_000 * NS, thread=9)
    assert ends(first, waiting)
    does_not_end(second)
    first.send_clock("WAIT", thread=8)
    assert ends(second, long)


@pytest.mark.fault
def test_a_card_that_is_in_a_call_follows_nobody(simulator):
    _, first, second = two_cards(simulator)
    first.send_clock("WAIT", deadline=1000_000 * NS, thread=7)
    assert ends(second, second.send_clock("WAIT", deadline=3000 * NS, thread=8))
    does_not_end(first)


@pytest.mark.fault
def test_an_endpoint_with_a_thread_of_its_own_follows_nobody(simulator):
    _, first, second = two_cards(simulator)
    first.clock("JOIN", 3, thread=7)
    waiting = second.send_clock("WAIT", deadline=3000 * NS, thread=8)
    does_not_end(second)
    first.send_clock("WAIT", 3, thread=7)
    assert ends(second, waiting), "card 0 has followed card 1 to thread 8"


@pytest.mark.fault
def test_a_thread_that_leaves_with_one_card_is_away_with_both_and_comes_back(simulator):
    sim = simulator("--participants", 0)
    clients = [Client(sim.path(n), join=()) for n in range(2)]
    for client in clients:
        client.clock("JOIN", thread=7)
        client.socket.settimeout(60)
    first, second = clients
    first.clock("JOIN", 5, thread=9)
    first.clock("LEAVE", thread=7)
    assert ends(first, first.send_clock("WAIT", 5, deadline=3000 * NS, thread=9))
    second.clock("LEAVE", thread=7)
    assert ends(first, first.send_clock("ENTER", thread=7))
    assert ends(second, second.send_clock("ENTER", thread=7))
    waiting = first.send_clock("WAIT", 5, deadline=3000 * NS, thread=9)
    does_not_end(first)
    second.send_clock("WAIT", thread=7)
    assert ends(first, waiting)


def one_thread_on_two_cards(simulator, seed):
    """Posted pokes to one card, then at once a wait on the other: all times that the thread has
    seen.
    """
    _, *clients = two_cards(simulator, 1)
    rng, log = random.Random(seed), []
    for client in clients:
        client.bus_master()
    memories = [client.map_shared(HIGH, 4096) for client in clients]
    for round_ in range(1, 60):
        here, there = round_ & 1, ~round_ & 1
        time.sleep(rng.random() * 0.002)
        for _ in range(round_ % 3):
            clients[there].charge("PUT", round_ % 5 + 1)
        poke(clients[there], HIGH, round_, delay=round_)
        poke(clients[here], HIGH, round_, delay=29 * round_ % 100)
        log.append(
            ends(
                clients[here],
                clients[here].send_clock(
                    "WAIT", watch=HIGH, length=4, deadline=9000 * NS, thread=7
                ),
            ).now
        )
        log.append((memories[there][0], memories[here][0]))
        clients[there].read(0, 4)
        log.append(
            ends(
                clients[there], clients[there].send_clock("WAIT", deadline=2000 * NS, thread=7)
            ).now
        )
    return log


@pytest.mark.fault
def test_a_run_of_one_thread_on_two_cards_repeats_to_the_picosecond(simulator):
    first = one_thread_on_two_cards(simulator, 1)
    assert one_thread_on_two_cards(simulator, 2) == first
    assert all(0 not in pair for pair in first[1::3])


# Who holds it, told -------------------------------------------------------------------------------


def state(sim):
    """What an observer is told; the question lets no time pass."""
    observer = Client(f"{sim.path(0)}.admin", join=())
    observer.socket.settimeout(60)
    text = observer.request(CLOCK).decode("ascii")
    observer.close()
    return text


@pytest.mark.fault
def test_an_observer_is_told_the_holder_of_the_clock(simulator):
    sim = simulator("--participants", 2)
    assert state(sim) == "time stands: 0 of 2 participants have joined"
    first = Client(sim.path(0))
    first.clock("LEAVE")
    first.clock("ENTER")
    assert state(sim) == "time stands: card0 endpoint 0 runs outside the library"
    waiting = first.send_clock("WAIT", deadline=10**15)
    assert state(sim) == "time stands: 1 of 2 participants have joined"
    second = Client(sim.path(1), join=(0, 3))
    assert state(sim) == "time stands: card1 endpoint 0, card1 endpoint 3 run outside the library"
    second.clock("LEAVE", 3)
    assert state(sim) == "time stands: card1 endpoint 0 runs outside the library"
    before = second.clock("NOW").now
    state(sim)
    assert second.clock("NOW").now == before
    second.clock("LEAVE")
    assert state(sim) == "time goes on"
    second.send_clock("ENTER", 3)
    assert state(sim) == (
        "time goes on: card1 endpoint 0 has left the clock and not come back, "
        "and another participant waits for that"
    )
    second.send_clock("ENTER")
    assert waiting is not None


@pytest.mark.fault
def test_an_observer_is_told_that_all_have_left_and_that_nobody_is_there(simulator):
    sim = simulator("--participants", 2)
    clients = [Client(sim.path(n)) for n in range(2)]
    for client in clients:
        client.clock("LEAVE")
    assert state(sim) == "time stands: card0 endpoint 0, card1 endpoint 0 have left the clock"
    for client in clients:
        client.close()
    assert state(sim) == "time stands: 0 of 2 participants have joined"


# The cable ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length_m, delay_ns", [(0, 140), (3, 155), (30, 290)])
def test_a_word_takes_transceivers_and_cable(simulator, length_m, delay_ns):
    sim = simulator("--participants", 2, "--set", f"link.length_m={length_m}")
    first, second = Client(sim.path(0)), Client(sim.path(1))
    second.bus_master()
    memory = second.map_shared(HIGH, 4096)
    second.write(0x80050, struct.pack("<Q", HIGH))
    waiting = second.send_clock("WAIT", watch=HIGH, length=4)
    first.wait(deadline=4000 * NS)
    before = first.clock("NOW").now
    first.write(0x80040, struct.pack("<I", 0xABCD))
    first.send_clock("WAIT")
    now = ClockReply(second.answer(waiting)).now
    assert memory[0:2] == b"\xcd\xab"
    # To the card 200 ns and one beat, through the cable, two beats and 200 ns to memory.
    cycles = -(-delay_ns // 8)
    assert now - before == (200 + 8 * (1 + cycles + 2) + 200) * NS
