"""Results of earlier runs, read from a folder or a file."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import json
import pathlib
import types

from dibber_cli import files
from dibber_cli.bench import LEFT_OUT, MODULES, TESTS
from dibber_cli.errors import CommandError

KEYS = {"test", "profile", "seed", "points", "versions"}  # of the JSON that report.write() writes
ORDER = [*TESTS, *LEFT_OUT]


def module(test: str) -> types.ModuleType:
    """The module of the benchmark of that name."""
    return importlib.import_module(f"dibber_cli.bench.{MODULES.get(test, test)}")


def _read(path: pathlib.Path) -> dict | None:
    """The result in a file; None if it is other JSON."""
    try:
        value = json.loads(files.read(path))
    except (CommandError, ValueError, RecursionError) as error:
        raise CommandError(
            f"{path}: {error}",
            "it is not what 'dibber bench' writes: measure again, or take it away",
        ) from error
    is_one = isinstance(value, dict) and KEYS <= set(value) and value["test"] in ORDER
    return value if is_one else None


def load(path: pathlib.Path) -> list[dict]:
    """The results in a folder, or the one in a file, in the order of ORDER and of profiles.

    Other files, and other JSON, are skipped. Raises CommandError if there is no result.
    """
    if not path.exists():
        raise CommandError(
            f"there is no {path}",
            "'dibber bench TEST' writes results to 'out', or where --out says",
        )
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found = [result for file in files if (result := _read(file))]
    if not found:
        raise CommandError(
            f"no results in {path}", f"'dibber bench all --out {path}' measures them"
        )
    return sorted(found, key=lambda result: (ORDER.index(result["test"]), result["profile"]))
