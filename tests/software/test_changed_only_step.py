"""The build's step for a simulated card that computes only changed logic: it reads and divides C++,
and refuses unknown forms.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hw" / "sim"))

import changed  # noqa: E402
from changed import activity, schedule, statements, units  # noqa: E402
from changed.statements import UnknownForm  # noqa: E402

import build  # noqa: E402

# A design with the difficult cases: logic from inputs to outputs that both phases compute, a
# counter that always runs, memories, a wide register, and a register that rarely changes.
DESIGN = """
module dibber_card(input sys_clk, input sys_rst, input [7:0] a, input [7:0] b, input write,
                   output [7:0] sum, output [7:0] stored, output [95:0] wide, output odd);
    reg [7:0] memory[0:15], seldom, held;
    reg [15:0] count;
    reg [95:0] shifted;
    assign sum = a + held;
    assign stored = memory[b[3:0]] ^ seldom;
    assign wide = shifted + {a, 80'd0, seldom};
    assign odd = ^count & write;
    always @(posedge sys_clk) begin
        count <= count + 1;
        if (write) begin
            memory[a[3:0]] <= b;
            held <= sum;
        end
        if (a == 8'h5a) seldom <= b;
        if (sys_rst) begin
            held <= 0;
            count <= 0;
            shifted <= 0;
        end else if (b[0]) shifted <= {shifted[87:0], a};
    end
endmodule
"""
# Both programs give the same random inputs, and print all outputs before each edge.
PROGRAM = """
#include <cstdio>
#include <cstdint>
#include "Vdibber_card.h"
#include "Vdibber_card___024root.h"
#include "evaluator.h"
double sc_time_stamp() { return 0; }
int main() {
    Vdibber_card model;
    Evaluator evaluator(model);
    uint32_t random = 1;
    for (int cycle = 0; cycle < 20000; cycle++) {
        random = random * 1664525 + 1013904223;
        model.sys_rst = cycle < 3 || random >> 22 == 5;
        if (random >> 30) { /* else all inputs stay */
            model.a = random >> 8;
            model.b = random >> 16;
            model.write = random >> 7 & 1;
        }
        evaluator.settle();
        printf("%x %x %x %x %x %x\\n", model.sum, model.stored, model.wide[0], model.wide[1],
               model.wide[2], model.odd);
        evaluator.clock();
    }
}
"""


@pytest.fixture(scope="module")
def verilated(tmp_path_factory):
    """The folder with Verilator's C++ of the design."""
    folder = tmp_path_factory.mktemp("design")
    (folder / "dibber_card.v").write_text(DESIGN)
    (folder / "dibber_card.f").write_text(str(folder / "dibber_card.v"))
    return build.verilate(folder)[0]


def compiled(verilated, folder, sources, code):
    """Objects of C++ sources, made in a new folder `folder`; `code` is a folder of headers."""
    folder.mkdir()
    include = build.verilator()[1] / "include"
    paths = [f"-I{path}" for path in (code, verilated, include, include / "vltstd")]
    command = ["g++", *build.SLOW_FLAGS.split(), *paths, "-c", *sources]
    subprocess.run(command, check=True, cwd=folder)
    return sorted(folder.glob("*.o"))


@pytest.fixture(scope="module")
def common(verilated, tmp_path_factory):
    """Objects that do not depend on the Evaluator: Verilator's library and the model's start."""
    include = build.verilator()[1] / "include"
    sources = [include / "verilated.cpp", include / "verilated_threads.cpp"]
    sources += [
        file
        for file in verilated.glob("*.cpp")
        if build.is_slow(file) or file.name == "Vdibber_card.cpp"
    ]
    folder = tmp_path_factory.mktemp("common") / "objects"
    return compiled(verilated, folder, sources, build.SIM / "plain")


def outputs(verilated, common, folder, code):
    """What PROGRAM prints with the Evaluator of the folder `code`."""
    main = folder.with_suffix(".cc")
    main.write_text(PROGRAM)
    sources = [main, *code.glob("*.cc")]
    if not (code / "evaluator.cc").exists():
        sources += verilated.glob("*__0.cpp")
    objects = compiled(verilated, folder, sources, code)
    program = folder / "program"
    subprocess.run(["g++", "-pthread", *common, *objects, "-o", program, "-latomic"], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def expected(verilated, common, tmp_path_factory):
    """What PROGRAM prints with Verilator's own code."""
    folder = tmp_path_factory.mktemp("plain") / "plain"
    return outputs(verilated, common, folder, build.SIM / "plain")


@pytest.mark.parametrize("levels", ["nothing known", "all busy", "counter busy"])
def test_random_inputs_give_the_same_outputs_as_verilators_code(
    verilated, common, expected, tmp_path, monkeypatch, levels
):
    lines = {
        "nothing known": [],
        "all busy": ["* 333"],
        "counter busy": ["* 000", "count 333"],
    }[levels]
    monkeypatch.setattr(activity, "read", lambda: activity.Levels(lines))
    changed.write(verilated, tmp_path / "code", "dibber_card")
    ours = outputs(verilated, common, tmp_path / "changed", tmp_path / "code")
    assert ours == expected
    assert len(set(ours.splitlines())) > 1000


# Forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "while (i0.a) { i0.b = 1U; }",
        "i0.a += 1U;",
        "i0.a = i0.b++;",
        "i0.a = (i0.b = 1U);",
        "VL_WRITEF_NX(i0.a, 1U);",
        "i0.a = VL_RANDOM_I();",
        "i0.a = something_else;",
        "if (i0.a) i0.b = 1U;",
        "if (i0.a { i0.b = 1U; }",
        "i0.a = 1U; }",
        "i0.a = 1U",
    ],
)
def test_an_unknown_form_is_refused_with_its_text(text):
    with pytest.raises(UnknownForm) as refused:
        statements.parse(text)
    assert "'" in str(refused.value)


def test_the_build_stops_when_verilator_writes_another_form(verilated, tmp_path):
    other = tmp_path / "verilated"
    shutil.copytree(verilated, other)
    [file] = [f for f in other.glob("*___024root__0.cpp")]
    text = file.read_text()
    edited = text.replace("vlSelfRef.sum = ", "vlSelfRef.sum |= ")
    assert text != edited
    file.write_text(edited)
    with pytest.raises(UnknownForm, match="is not known here"):
        changed.write(other, tmp_path / "code", "dibber_card")


# Division -----------------------------------------------------------------------------------------


def test_a_condition_over_two_variables_becomes_two():
    [condition] = statements.parse("if (i0.a) { i0.b = 1U; i0.c = i0.d; } else { i0.b = 2U; }")
    parts = units.divide(condition)
    assert [statements.writes(part) for part in parts] == [{"i0.b"}, {"i0.c"}]
    assert statements.reads(parts[1]) == {"i0.a", "i0.d"}


def test_a_condition_that_reads_what_it_writes_stays_whole():
    [condition] = statements.parse("if (i0.a) { i0.a = 0U; i0.b = 1U; }")
    assert units.divide(condition) == [condition]


def test_all_writes_of_a_variable_are_one_unit_and_readers_follow():
    found = units.of_phase(
        "clock", statements.parse("i0.a = i0.x; i0.b = i0.a; i0.c = 1U; i0.c = 2U;")
    )
    assert [sorted(unit.writes) for unit in found] == [["i0.a"], ["i0.b"], ["i0.c"]]
    assert found[0].successors == {1}
    assert len(found[2].statements) == 2


def test_a_reader_of_the_old_value_runs_before_its_writer():
    found = units.of_phase("clock", statements.parse("i0.b = i0.a; i0.a = i0.x;"))
    [chunk] = schedule.chunks(found, activity.Levels(["* 333"]))
    assert [s.target for s in chunk.statements] == ["i0.b", "i0.a"]


def test_a_variable_that_is_written_on_one_way_only_keeps_its_old_value_on_the_other():
    found = statements.parse("if (i0.a) { i0.b = 1U; } i0.c = i0.b;")
    assert statements.needs(found, lambda variable: 0, set()) == {"i0.a", "i0.b"}


# Activity -----------------------------------------------------------------------------------------


def test_the_written_activity_gives_each_name_its_levels(seed):
    measured = {
        "packet_crc_value": "033",
        "packet_crc_next": "033",
        "packet_age": "000",
        "packet_age_next": "333",
        "counter": "333",
    }
    levels = activity.Levels(activity.lines(measured))
    assert {name: levels.of_name(name) for name in measured} == measured
    assert len(activity.lines(measured)) < len(measured)


def test_a_new_signal_is_as_busy_as_its_block():
    levels = activity.Levels(["* 000", "packet_ 033"])
    assert levels.of_name("packet_something_new") == "033"
    assert levels.of_name("block_nobody_knows") == "000"


def test_the_committed_file_is_read():
    assert activity.read().of_name("nothing_like_this") is not None


def test_a_wide_shift_writes_the_argument_behind_its_widths():
    text = "VL_SHIFTL_WWI(128,128,7, L7_to, i1.from, (IData)(i1.by))"
    assert statements.assignment(text) == (text, "L7_to", "", {"i1.from", "i1.by"})
    with pytest.raises(UnknownForm):
        statements.assignment("VL_SHIFTL_WWI(128,128,7, L7_to, i1.from, i1.by++)")
