"""The number that identifies the gateware's code. Comments and docstrings do not change it."""

# SPDX-License-Identifier: BSD-2-Clause

import ast
import functools
import pathlib
import zlib

from dibber.interface.description import INTERFACE

# Files that are known by what they describe: most of their strings are prose for the C header and
# the documentation. `canonical` is the description without that prose. It covers all of them.
DESCRIBED = {
    "interface/description.py": INTERFACE.canonical,
    "interface/ethernet.py":    lambda: "",
    "interface/sizes.py":       lambda: "",
    "interface/switch.py":      lambda: "",
    "interface/two_cables.py":  lambda: "",
    "interface/window.py":      lambda: "",
}

# Prose --------------------------------------------------------------------------------------------

def is_prose(statement):
    """Whether a statement is a docstring, another string alone, or an assignment to `__doc__`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Attribute) and target.attr == "__doc__" for target in statement.targets)

def shape(node):
    """A node of the syntax tree as nested tuples, without prose and without places in the file.

    Fields that are empty are left out. So all versions of Python give the same result.
    """
    if isinstance(node, ast.AST):
        fields = [(name, shape(value)) for name, value in ast.iter_fields(node) if name != "kind"]
        return type(node).__name__, *[(name, value) for name, value in fields if value not in (None, ())]
    if isinstance(node, list):
        return tuple(shape(item) for item in node if not is_prose(item))
    return repr(node) if node is not None else None

@functools.lru_cache(maxsize=1024)
def code_text(source):
    """The shape of a file, as text. It is kept: one process may elaborate many cards.

    source : bytes
    """
    return repr(shape(ast.parse(source)))

# Identity -----------------------------------------------------------------------------------------

def code_crc(folder=pathlib.Path(__file__).parents[1], described=DESCRIBED):
    """CRC-32 over the names and the code of the Python files in `folder`, in the order of names.

    The result is register BUILD, and so a part of the netlist. Therefore it depends on the syntax
    trees alone: prose must not move a net.

    Parameters
    ----------
    described : dict of file name -> function that gives a string in place of the file's code
    """
    crc = 0
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix()
        code = described[name]() if name in described else code_text(path.read_bytes())
        crc  = zlib.crc32(f"{name}\n{code}\n".encode(), crc)
    return crc
