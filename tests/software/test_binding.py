"""The Python binding agrees with dibber.h; walks over NumPy arrays describe the arrays."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import pathlib
import re
import subprocess

import numpy as np
import pytest
from libdibber import Walk, binding

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "software" / "lib" / "include" / "dibber" / "dibber.h"


def test_structures_have_the_compilers_layout(tmp_path):
    lines = []
    for name, structure in binding.STRUCTURES.items():
        lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
        lines += [
            f'printf("%zu\\n", offsetof(struct {name}, {field[0]}));'
            for field in structure._fields_
        ]
    (tmp_path / "layout.c").write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <dibber/dibber.h>\n"
        "#include <dibber/window.h>\n"
        f"int main(void)\n{{\n{chr(10).join(lines)}\nreturn 0;\n}}\n"
    )
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-Wall",
            "-Werror",
            f"-I{HEADER.parents[1]}",
            f"-I{ROOT / 'build' / 'generated'}",
            "-o",
            str(tmp_path / "layout"),
            str(tmp_path / "layout.c"),
        ],
        check=True,
    )
    compiled = subprocess.run(
        [str(tmp_path / "layout")], check=True, capture_output=True, text=True
    ).stdout.split()
    ours = []
    for structure in binding.STRUCTURES.values():
        ours.append(ctypes.sizeof(structure))
        ours += [getattr(structure, field[0]).offset for field in structure._fields_]
    assert ours == [int(n) for n in compiled]


def test_errors_have_the_headers_numbers():
    found = re.findall(r"DIB_ERR_(\w+)\s*= (-\d+)", HEADER.read_text())
    assert [(name, -1 - i) for i, name in enumerate(binding.ERRORS)] == [
        (n, int(v)) for n, v in found
    ]


def test_every_error_has_a_sentence_of_its_own():
    sentences = {binding.library().dib_strerror(-1 - i) for i in range(len(binding.ERRORS))}
    assert len(sentences) == len(binding.ERRORS)
    assert binding.library().dib_strerror(-99) == b"unknown error"


def test_the_header_is_usable_from_c_plus_plus():
    subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            f"-I{HEADER.parents[1]}",
            f"-I{ROOT / 'build' / 'generated'}",
            "-x",
            "c++",
            str(HEADER),
        ],
        check=True,
    )


@pytest.mark.parametrize(
    "view, blocks, levels",
    [
        (lambda a: a, 4 * 6 * 8 * 10, 0),
        (lambda a: a[1, 2, 3], 10, 0),
        (lambda a: a[:, 2, 3, 4], 1, 1),
        (lambda a: a[:, :, 3, 4], 1, 1),
        (lambda a: a[::-1, 1, 1, 1], 1, 1),
        (lambda a: a[1:3, 2:4, 3:5, :7], 7, 3),
        (lambda a: a[:, :, ::2, ::3], 1, 2),
        (lambda a: a[:, :, :, 2:5], 3, 1),
    ],
)
def test_a_walk_over_an_array_is_its_elements_in_order(view, blocks, levels):
    whole = np.arange(4 * 6 * 8 * 10, dtype="u2").view("u1")[: 4 * 6 * 8 * 10].reshape(4, 6, 8, 10)
    part = view(whole)
    walk = Walk.of(7, part, whole.ctypes.data)
    assert (walk.block, len(walk.levels), walk.length) == (blocks, levels, part.size)
    flat = whole.reshape(-1)
    taken = np.concatenate([flat[o : o + walk.block] for o in walk.blocks()])
    assert np.array_equal(taken, part.reshape(-1))


def test_a_walk_of_four_levels_is_refused():
    whole = np.zeros((4, 6, 8, 10), dtype="u1")
    with pytest.raises(ValueError, match="4 stride levels"):
        Walk.of(7, whole[:3, :5, :7, ::3], whole.ctypes.data)
