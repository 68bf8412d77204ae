# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What each command does: parsed arguments in, exit code out."""

import importlib
import json
import sys

from pathlib import Path

import libdibber

from dibber.interface.description import LINK_STATE, MCP_STATE
from dibber_cli import output, paths, profile, simulator
from dibber_cli.errors import CommandError
from dibber_cli.fw import images


def print_json(value):
    print(json.dumps(value, indent=2))


# Cards --------------------------------------------------------------------------------------------

def info(arguments):
    with libdibber.Card(arguments.uri) as card:
        values = card.info()
    if arguments.json:
        print_json(values)
        return 0
    output.table(["card", arguments.uri], [
        ("interface",       f"{values['interface_version'] >> 16}.{values['interface_version'] & 0xffff}, "
                            f"hash {values['interface_hash']:08x}"),
        ("gateware",        f"build {values['build']:08x}, {values['data_width']} bits at {values['clock_hz']/1e6:g} MHz"),
        ("geometry",        f"{values['endpoints']} endpoints of {values['slots']} slots, {values['regions']} regions, "
                            f"{values['nodes']} nodes"),
        ("node",            values["node"]),
        ("control program", f"{MCP_STATE.name_of(values['mcp_state'])}, identity {values['mcp_identity']:08x}"),
        ("link",            LINK_STATE.name_of(values["link_state"])),
        ("PCIe",            f"maximum payload {values['max_payload']}, read request {values['max_request']} bytes"),
        ("clock",           f"{values['cycles']} cycles")])
    counted = [(name, value) for name, value in values["counters"].items() if value]
    if counted:
        print()
        output.table(["counter", "value"], counted)
    return 0


def fw_load(arguments):
    with libdibber.Card(arguments.uri) as card:
        card.load_firmware(arguments.file)
        identity = card.info()["mcp_identity"]
    images.remember(arguments.uri, arguments.file)
    if arguments.json:
        print_json({"file": arguments.file, "uri": arguments.uri, "identity": f"{identity:08x}"})
    else:
        print(f"{arguments.file} runs on {arguments.uri}: identity {identity:08x}")
    return 0


# Simulator ----------------------------------------------------------------------------------------

def _sockets():
    return [f"sim:{paths.run_directory()}/card{n}.sock" for n in range(2)]


def sim_start(arguments):
    options = [word for change in arguments.set for word in ("--set", change)]
    pid = simulator.start(profile.load(arguments.profile), participants=arguments.participants, seed=arguments.seed,
                          options=options)
    if arguments.json:
        print_json({"process": pid, "uris": _sockets(), "log": str(paths.run_directory()/"log")})
    else:
        print(f"process {pid}, log {paths.run_directory()/'log'}")
        print("\n".join(_sockets()))
    return 0


def sim_stop(arguments):
    pid = simulator.stop()
    if arguments.json:
        print_json({"process": pid})
    else:
        print(f"process {pid} has ended")
    return 0


def sim_status(arguments):
    pid = simulator.running()
    status = {"running": pid is not None}
    if pid is not None:
        status.update(process=pid, profile=(paths.run_directory()/"profile").read_text().strip(), uris=_sockets(),
                      log=str(paths.run_directory()/"log"))
    if arguments.json:
        print_json(status)
    elif pid is None:
        print("no simulator is running")
    else:
        print(f"process {pid}, profile {status['profile']}, log {status['log']}")
        print("\n".join(_sockets()))
    return 0


def sim_speed(arguments):
    from dibber_cli.bench import speed

    if not arguments.speed:
        print("dibber sim: start, stop, status or --speed is missing (--help shows what they do)", file=sys.stderr)
        return 2
    chosen = profile.load(arguments.profile)
    ours, reference, failed = speed.of_stride(chosen, arguments.seed), None, None
    try:
        reference = speed.of_reference(chosen)
    except CommandError as error:
        failed = error
    if arguments.json:
        print_json({"profile": chosen.name, "cycles_per_second_per_card": round(ours),
                    "reference_cycles_per_second": reference and round(reference)})
    else:
        rows = [("two cards, hosts and cable, both sides strided", f"{ours/1e3:.0f}")]
        if reference:
            rows.append(("bare VexRiscv + LitePCIe", f"{reference/1e3:.0f}"))
        output.table([f"simulation speed, {chosen.name}", "1000 cycles a second and card"], rows)
    if failed:
        raise failed
    return 0


# Benchmarks ---------------------------------------------------------------------------------------

def _points(test, series):
    """The benchmark's points; with `series`, names separated by commas, those alone. Raises CommandError."""
    if not series:
        return test.points()
    names, choice = series.split(","), getattr(test, "CHOICE", ())
    if unknown := [name for name in names if name not in choice]:
        raise CommandError(f"bench {test.NAME}: no series '{unknown[0]}' to choose",
                           f"there are: {', '.join(choice)}" if choice else "it always measures all")
    return test.points(series=tuple(names))


def bench(arguments):
    """Run the benchmark that `arguments.test` names."""
    from dibber_cli.bench import report, session

    test     = importlib.import_module(f"dibber_cli.bench.{arguments.test}")
    chosen   = profile.load(arguments.profile)
    points   = _points(test, arguments.series)
    progress = output.Progress(len(points), shown=not arguments.json)
    command  = f"dibber bench {arguments.test} --profile {arguments.profile} --seed {arguments.seed}"
    if arguments.series:
        command += f" --series {arguments.series}"
    try:
        result = session.run(test, chosen, arguments.seed, command, points, progress)
    finally:
        progress.clear()
    files = report.write(result, test.panels(result), Path(arguments.out))
    if arguments.json:
        print_json(result)
    else:
        report.show(result, test.tables(result))
        print("written: " + ", ".join(str(f) for f in files))
    if result["bytes_wrong"]:
        raise CommandError(f"{result['bytes_wrong']} bytes are wrong")
    return 0


def calibrate(arguments):
    from dibber_cli.bench import calibrate as calibration

    calibration.show(profile.load(arguments.profile))
    return 0
