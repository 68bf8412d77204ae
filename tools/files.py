"""Names of the tree's files, with git or without it.

    python -P -m tools.files '*.c' '*.h'        the names that match, each followed by a zero byte

A tree from an archive has no history, and a bare Debian has no git. Then the folders are walked.
"""

# SPDX-License-Identifier: BSD-2-Clause

import fnmatch
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# As in .gitignore: results at the top, and what tools leave anywhere.
RESULTS = ("build", "out")
LEFT_BEHIND = ("__pycache__", ".pytest_cache", ".hypothesis", "*.egg-info", ".git", ".ruff_cache")


def git(root, *words):
    """What git prints for a checkout with this root, or None without git or for another tree."""
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def walked(root):
    """Names of all files below root, but for results and caches."""
    for folder, folders, files in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        folders[:] = [
            name
            for name in folders
            if not any(fnmatch.fnmatch(name, pattern) for pattern in LEFT_BEHIND)
            and str(here / name) not in RESULTS
        ]
        yield from (str(here / name) for name in files if not name.endswith(".pyc"))


def names(*patterns, root=ROOT):
    """Sorted names, relative to root, of the files that match one of the patterns; none: all.

    A `*` stands for slashes, too, as in `git ls-files`. Files that are new and not ignored count.
    """
    listed = git(root, "ls-files", "-co", "--exclude-standard", "-z")
    found = walked(root) if listed is None else listed.split("\0")
    return sorted(
        {
            name
            for name in found
            if (not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
            and (root / name).is_file()
        }
    )


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\0" for name in names(*sys.argv[1:])))
