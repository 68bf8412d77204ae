"""Mutants of the control program are noticed by a test: a sample of the list, by seed. `make
mutants` runs all."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.firmware import mutants

SAMPLE = 3


@pytest.fixture(scope="module")
def entries():
    return mutants.read_list()


@pytest.mark.fault
def test_each_mutant_of_a_sample_is_killed_by_its_test(entries, seed, tmp_path):
    sample = mutants.random.Random(seed).sample(entries, SAMPLE)
    assert mutants.run(mutants.Builder(tmp_path), sample) == []


@pytest.mark.fault
def test_the_list_has_30_mutants_and_each_has_its_test_or_a_reason(entries):
    assert len(entries) >= 30
    assert [mutants.shown(mutant) for mutant, verdict in entries if len(verdict) != 1] == []
    assert {mutant.kind for mutant, _ in entries} >= {"relation", "constant", "statement"}


def test_every_text_of_the_list_is_in_its_file(entries):
    """A vanished mutant needs a replacement: see mutants.py."""
    assert [mutants.shown(mutant) for mutant, _ in entries if mutants.mutated(mutant) is None] == []


def test_a_mutant_whose_text_is_gone_is_reported(entries, tmp_path):
    mutant, verdict = entries[0]
    gone = mutant._replace(line="this line is not there")
    [said] = mutants.run(None, [(gone, verdict)])
    assert said.startswith("no longer there") and "this line is not there" in said


def test_comments_texts_and_arrows_make_no_mutants():
    text = """/* a < b */
static int f(struct s *p)
{
\tint n = p->a << 1;	/* n == 1 */
\tif (n >> 2 <= 3)
\t\tg(p);
\th("1 < 2");
\treturn n;
}
"""
    found = [(mutant.kind, mutant.new) for mutant in mutants.mutants_of("f.c", text)]
    assert ("relation", "if (n >> 2 < 3)") in found and (
        "constant",
        "int n = p->a << 2;	/* n == 1 */",
    ) in found
    assert [new for kind, new in found if kind == "relation"] == ["if (n >> 2 < 3)"]
    assert [kind for kind, _ in found].count("statement") == 1
