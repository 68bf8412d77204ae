"""`dibber bench mpi`: parts of it, the bound that charges give, and series without charges."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import profile
from dibber_cli.bench import charges, mpi


def test_the_parts_that_are_named_are_measured_and_no_others():
    every = mpi.points()
    assert {job.series for job in every} == set(mpi.CHOICE)
    assert mpi.points(series=("put",)) == [job for job in every if job.series == "put"]


def test_charges_are_instructions_of_provider_and_engine():
    table = charges.table()
    own, engine = table["SEND"]
    assert charges.nanoseconds("SEND") == pytest.approx((own + engine) / 4.5)
    both = charges.nanoseconds("SEND", "ENTRY")
    assert both == pytest.approx(charges.nanoseconds("SEND") + charges.nanoseconds("ENTRY"))


def test_puts_that_are_joined_stand_beside_what_their_charges_allow():
    most = 8000 / charges.nanoseconds("TRANSFER", "ENTRY")
    points = [{"series": "put-coalesced", "x": x, "value": most / x} for x in (1, 2)]
    assert any(
        f"50.0 % of the {most:.1f} MB/s" in said for said in mpi._findings({"points": points})
    )


def test_series_without_charges_have_names_and_bounds_of_their_own():
    results = [
        {"point": job, "values": [("half-round-trip", 8.0, 1.5), ("barrier", 2.0, 3.0)]}
        for job in mpi.points(series=("messages",))
    ]
    points = list(mpi._points(profile.load("gen2x4"), results))
    assert [p["series"] for p in points] == [
        "half-round-trip",
        "barrier",
        "half-round-trip-free-cpu",
        "barrier-free-cpu",
    ]
    assert points[0]["bound"] == points[2]["bound"] and points[1]["bound"] == points[3]["bound"]
