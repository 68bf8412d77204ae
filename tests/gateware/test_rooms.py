"""The gateware's folders are layers: no import goes up, and no imports form a circle."""

# SPDX-License-Identifier: BSD-2-Clause

import ast
import pathlib

import pytest

import dibber
from tools.graphs import components

PACKAGE = pathlib.Path(dibber.__file__).parent


def modules(package):
    """Dict of module name, without the package's own, -> file. An `__init__` has its folder's
    name.
    """
    result = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package).with_suffix("").parts
        if parts != ("__init__",):
            result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return result


def imports(package):
    """Dict of module name -> set of the package's modules that it imports."""
    known = modules(package)
    result = {}
    for name, file in known.items():
        wanted = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{file}: relative import"
                # `from folder import module` imports a module, all others import names from one.
                wanted |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        prefix = f"{package.name}."
        result[name] = {word.removeprefix(prefix) for word in wanted if word.startswith(prefix)}
        result[name] &= known.keys()
    return result


def layer(module):
    return module.split(".")[0]


def upward(graph, layers):
    """Pairs of modules of which the first imports the second from a layer above its own."""
    return [
        (module, other)
        for module, others in graph.items()
        for other in sorted(others)
        if layers.index(layer(other)) > layers.index(layer(module))
    ]


def circle(graph):
    """Modules that import one another in a circle, sorted; [] if there are none."""
    return next((sorted(part) for part in components(graph) if len(part) > 1), [])


def test_each_module_belongs_to_a_layer_and_each_layer_has_modules():
    assert {layer(module) for module in modules(PACKAGE)} == set(dibber.LAYERS)
    assert len(set(dibber.LAYERS)) == len(dibber.LAYERS)


def test_no_import_goes_to_a_higher_layer():
    assert upward(imports(PACKAGE), dibber.LAYERS) == []


def test_no_imports_form_a_circle():
    assert circle(imports(PACKAGE)) == []


@pytest.fixture
def package(tmp_path):
    """A package of two layers, `low` and `high`; a function that writes a module of it."""
    root = tmp_path / "cards"

    def write(module, text):
        file = root / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return root

    write("low.a", "")
    write("high.b", "from cards.low.a import Block\n")
    return write


def test_an_import_that_goes_up_is_found(package):
    root = package("low.c", "def f():\n    from cards.high.b import Block\n")
    assert upward(imports(root), ("low", "high")) == [("low.c", "high.b")]
    root = package("low.c", "from cards.high import b\n")
    assert upward(imports(root), ("low", "high")) == [("low.c", "high.b")]


def test_a_circle_within_a_layer_is_found(package):
    root = package("low.a", "import cards.low.c\n")
    assert circle(imports(root)) == []
    package("low.c", "from cards.low.a import Block\n")
    assert circle(imports(root)) == ["low.a", "low.c"]
