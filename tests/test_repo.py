"""The rules of the house, read from the sources: who may import what, docstrings, stems, sizes, packaging.

Nothing is imported here, so a module that breaks is still judged. A failure lists ``file:line: what is wrong``.
"""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Importable folders, in the order in which one may build on another.
FOLDERS = (
    "tilewright",
    "spec",
    "golden",
    "hw",
    "sim",
    "network",
    "verify",
    "board",
    "silicon",
    "c",
    "tools",
    "system",
    "tb",
)

#: Modules outside the standard library that a folder may import; any, if it is not listed.
THIRD_PARTY = {
    "spec": set(),
    "hw": {"amaranth"},
    "golden": {"numpy"},
    "network": {"numpy", "onnx", "onnxruntime", "PIL"},
}

#: What every room but spec, golden and hw may import: errors, files, progress bars.
SHARED = tuple(f"tilewright.{path.stem}" for path in (ROOT / "tilewright").glob("[!_]*.py"))

#: Modules of ours that a folder may import beside its own.
OURS = {
    "tilewright": (),
    "spec": (),
    "golden": ("tilewright.spec",),
    "hw": ("tilewright.spec",),
    "sim": (*SHARED, "tilewright.spec", "tilewright.golden", "tilewright.hw"),
    "network": (*SHARED, "tilewright.spec", "tilewright.golden", "tilewright.sim.session", "tilewright.sim.kernels"),
    "verify": (*SHARED, *(f"tilewright.{name}" for name in ("spec", "golden", "hw", "sim"))),
    "board": (*SHARED, *(f"tilewright.{name}" for name in ("spec", "golden", "hw", "sim"))),
    "silicon": (*SHARED, *(f"tilewright.{name}" for name in ("spec", "golden", "hw", "sim", "verify"))),
    "c": (),
    "tools": ("tilewright",),
    "system": ("tilewright",),
    "tb": tuple(f"tilewright.{name}" for name in ("spec", "golden", "hw", "sim", "verify")),
    "tests": ("tilewright",),
}

#: Modules that a folder may not import although the two tables above would let it.
FORBIDDEN = {
    "hw": ("amaranth.sim", "amaranth.back"),  # hardware does not run itself
    "sim": ("pytest",),  # machinery, not tests
    "tb": ("pytest",),  # runs inside the simulator
}

#: Subfolders in the order in which one may import another: each imports only itself and those before it.
#: Modules of the folder itself are shared shapes and parameters, or tops that connect the rooms; any may import them.
ROOMS = {
    "hw": ("lib", "bus", "smem", "reduce", "dot_product", "tmau", "pe", "conv", "core", "cluster"),
    "network": ("reader", "lower", "tiling", "plan", "models"),
    "sim": ("hdl", "harness", "session", "asm", "kernels", "replay", "report", "workloads", "bench"),
    "verify": ("pysim", "random", "compare", "coverage"),
}

#: Folders, the first of which does not import the second although the order would let it.
STRANGERS = [
    *(("hw/pe", "hw/tmau"), ("hw/conv", "hw/tmau"), ("hw/conv", "hw/pe"), ("hw/tmau/store", "hw/tmau/load")),
    *((f"sim/{name}", "tilewright/results") for name in ("hdl", "harness", "session")),
]

#: Stems without a test file of their own. They hold shapes and numbers, which the tests of their users check.
NO_TEST = {"__init__", "axi4", "layouts", "params", "reads", "signatures", "writes"}


def python_files(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files():
    """Files that are committed: everything in the folders, and the files beside them, that is text."""
    paths = chain(ROOT.iterdir(), *((ROOT / folder).rglob("*") for folder in (*FOLDERS, "tests", "docs", ".ci")))
    suffixes = (_WRITTEN | {"", ".sv", ".cc"}) - {".jpg", ".onnx", ".xz"}
    return sorted(p for p in paths if p.is_file() and p.suffix in suffixes and "__pycache__" not in p.parts)


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def where(path, node=None):
    line = f":{node.lineno}" if node is not None else ""
    return f"{path.relative_to(ROOT)}{line}"


def report(violations):
    violations = list(violations)
    if violations:
        pytest.fail("\n".join(violations), pytrace=False)


def imports(path):
    """Yields (node, level, module) for every import of the file; ``from a import b`` yields ``a.b`` too."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node, node.level, node.module or ""
            if not node.level:
                for alias in node.names:
                    yield node, 0, f"{node.module}.{alias.name}"


def inside(module, parents):
    return any(module == parent or module.startswith(parent + ".") for parent in parents)


def wrong_import(folder, depth, level, module):
    """What is wrong with an import in ``folder``, ``depth`` folders below it; None if nothing is."""
    if level:
        if folder == "tests":
            return "tests import nothing from each other but support.…"
        return "a relative import leaves its folder: write tilewright.… " if level > depth + 1 else None
    top = module.split(".")[0]
    if top == "support" and folder != "tests":
        return "tests/support/ is for tests"
    if inside(module, FORBIDDEN.get(folder, ())):
        return f"{folder}/ may not import {module}"
    if top == "tilewright":
        if inside(module, (f"tilewright.{folder}",)):
            return f"{module} is in the same folder: write a relative import"
        # `from tilewright.sim import session` yields tilewright.sim first, which is on the way to an allowed one.
        on_the_way = any(allowed.startswith(module + ".") for allowed in OURS[folder])
        return None if inside(module, OURS[folder]) or on_the_way else f"{folder}/ may not import {module}"
    if top in (*FOLDERS, "tests"):
        return f"{module} is a folder of the repository: write tilewright.{module}"
    allowed = THIRD_PARTY.get(folder)
    if top in sys.stdlib_module_names or allowed is None or top in allowed:
        return None
    return f"{folder}/ may not import {module}"


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_folder_imports_only_what_it_may(folder):
    violations = []
    for path in python_files(folder):
        depth = len(path.relative_to(ROOT / folder).parts) - 1
        for node, level, module in imports(path):
            wrong = wrong_import(folder, depth, level, module)
            if wrong:
                violations.append(f"{where(path, node)}: {wrong}")
    report(violations)


@pytest.mark.parametrize(
    ("folder", "depth", "level", "module"),
    [
        ("hw", 1, 0, "numpy"),
        ("hw", 1, 0, "amaranth.sim"),
        ("hw", 1, 0, "tilewright.golden"),
        ("hw", 1, 0, "tilewright.hw.lib"),
        ("hw", 1, 3, "spec"),
        ("golden", 0, 0, "amaranth"),
        ("golden", 1, 0, "tilewright.hw.tmau"),
        ("sim", 0, 0, "tilewright.tb"),
        ("sim", 0, 0, "tilewright.network"),
        ("sim", 0, 0, "pytest"),
        ("network", 1, 0, "tilewright.hw.conv"),
        ("tb", 0, 0, "tests"),
        ("verify", 1, 0, "support.streams"),
        ("tests", 1, 1, "helpers"),
        ("tests", 1, 0, "hw.lib"),
    ],
)
def test_import_rules_refuse(folder, depth, level, module):
    assert wrong_import(folder, depth, level, module)


def room(path, folder):
    """The subfolder of ``folder`` that a module lies in, or is, or "" if it lies in ``folder`` itself."""
    first = path.relative_to(ROOT / folder).parts[:1]
    return first[0] if first and (ROOT / folder / first[0]).is_dir() else ""


def imported_modules(path):
    """Yields (node, module) for every import of a module of ours, with its path from the root: ``hw.tmau.params``."""
    here = path.relative_to(ROOT).parts
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom):
            start = here[: -node.level] if node.level else ()
            module = ".".join((*start, *filter(None, [node.module]))).removeprefix("tilewright.")
            for alias in node.names:
                inner = ROOT.joinpath(*module.split("."), alias.name)
                yield node, f"{module}.{alias.name}" if inner.is_dir() or inner.with_suffix(".py").exists() else module


@pytest.mark.parametrize("folder", ROOMS)
def test_rooms_import_in_one_direction(folder):
    order = ROOMS[folder]
    found = {room(path, folder) for path in python_files(folder)} - {""}
    assert found == set(order), f"ROOMS in tests/test_repo.py is not the list of folders in {folder}/"
    violations = []
    for path in python_files(folder):
        here = room(path, folder)
        for node, module in imported_modules(path):
            near = inside(module, [folder.replace("/", ".")])
            there = room(ROOT.joinpath(*module.split(".")), folder) if near else ""
            if here and there and order.index(there) > order.index(here):
                violations.append(f"{where(path, node)}: {folder}/{here} may not import {folder}/{there}")
    report(violations)


@pytest.mark.parametrize(("folder", "stranger"), STRANGERS)
def test_rooms_that_do_not_know_each_other(folder, stranger):
    report(
        f"{where(path, node)}: {folder} may not import {stranger}"
        for path in python_files(folder)
        for node, module in imported_modules(path)
        if inside(module, [stranger.replace("/", ".")])
    )


def test_every_component_has_a_unit_test():
    homes = {path: path.relative_to(ROOT / "hw").with_name(f"test_{path.name}") for path in python_files("hw")}
    report(
        f"{where(path)}: has no tests/unit/{home}"
        for path, home in homes.items()
        if path.stem not in NO_TEST and not list((ROOT / "tests/unit" / home.parent).glob(f"{home.stem}*.py"))
    )


def test_every_unit_test_has_its_module():
    """``test_x.py`` and ``test_x_aspect.py`` test the module ``x``, or the folder."""
    violations = []
    for path in sorted((ROOT / "tests/unit").rglob("test_*.py")):
        words, package = path.stem.removeprefix("test_").split("_"), path.relative_to(ROOT / "tests/unit").parent
        stems = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
        homes = [home / package / stem for stem in stems for home in (ROOT, ROOT / "hw", ROOT / "tests")]
        if not any(home.with_suffix(".py").exists() or home.is_dir() for home in homes):
            violations.append(f"{where(path)}: there is no module {package}/{stems[-1]}")
    report(violations)


def test_no_exemption_is_stale():
    assert {path.stem for path in python_files("hw")} >= NO_TEST


def test_every_module_has_a_docstring():
    report(
        f"{where(path)}: the module has no docstring"
        for path in python_files(*FOLDERS, "tests")
        if not ast.get_docstring(parse(path))
    )


def bound_names(body):
    """Names that the statements of a module bind."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        else:
            yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def is_cocotb_test(node):
    """cocotb finds its tests by their decorators, ``@cocotb.test()`` and ``@cocotb.parametrize()``, and not by name."""
    return any(ast.unparse(decorator).startswith("cocotb.") for decorator in node.decorator_list)


def test_every_module_says_what_it_exports():
    violations = []
    for path in python_files(*FOLDERS, "tests/support"):
        body = parse(path).body
        exported = None
        if "__getattr__" in bound_names(body):
            continue  # a face that imports its names when they are used
        for node in body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                exported = ast.literal_eval(node.value)
        names = set(bound_names(body))
        if exported is None:
            if names:
                violations.append(f"{where(path)}: there is no __all__")
            continue
        violations += [f"{where(path)}: __all__ names {name}, which does not exist" for name in set(exported) - names]
        violations += [
            f"{where(path, node)}: {node.name} is public but not in __all__"
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and not is_cocotb_test(node)
            and node.name not in exported
        ]
    report(violations)


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def undocumented(body):
    """Yields (node, what is wrong) for the public classes and functions of a body, classes in classes included."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            late = isinstance(node, ast.ClassDef) and any(is_text(statement) for statement in node.body)
            yield node, f"{node.name} has its docstring in the wrong place" if late else f"{node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(child for child in node.body if isinstance(child, ast.ClassDef))


def test_everything_public_has_a_docstring():
    report(
        f"{where(path, node)}: {wrong}"
        for path in python_files(*FOLDERS, "tests/support")
        for node, wrong in undocumented(parse(path).body)
    )


def test_docstring_below_a_nested_class_is_found():
    source = 'class A:\n    class B:\n        """B."""\n    """A."""\nclass C:\n    """C."""\n'
    assert [wrong for _, wrong in undocumented(ast.parse(source).body)] == ["A has its docstring in the wrong place"]


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"(?<![\w.}])/(?:work|root|home|tmp)/\w", "names a path of one machine"),
        (r"pypi[.]org|pythonhosted[.]org|deb[.]debian[.]org|npmjs[.]|proxy[.]golang", "names a package registry"),
        (r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b", "leaves work undone"),
    ],
    ids=["machine-paths", "registries", "to-do"],
)
def test_no_text_contains(pattern, what):
    violations = []
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                violations.append(f"{where(path)}:{number}: {what}")
    report(violations)


def test_no_stub_files():
    report(f"{where(path)}: annotations belong in the module" for f in FOLDERS for path in (ROOT / f).rglob("*.pyi"))


#: Kinds of files that somebody writes, beside those without a suffix.
_WRITTEN = {
    ".S", ".c", ".cpp", ".cu", ".h", ".html", ".jpg", ".json", ".ld", ".md", ".onnx", ".pe", ".py", ".svg", ".toml",
    ".v", ".xz", ".yml",
}  # fmt: skip
#: Kinds that also lie in the root folder of the repository.
_WRITTEN_IN_ROOT = {".md", ".py", ".toml"}


def generated(tracked):
    """A sentence for each path that only a tool can have written there."""
    for path in map(PurePosixPath, tracked):
        if path.suffix and path.suffix not in (_WRITTEN if path.parent.name else _WRITTEN_IN_ROOT):
            yield f"{path}: a tool wrote it; it must not be tracked, and the tool must write to a folder of its own"


def test_nothing_that_tools_write_is_tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    report(generated(listed.splitlines()))
    refused = ["soc_rom.init", "soc.v", "a/dump.vcd", "a/b.o"]
    assert [line.partition(":")[0] for line in generated(["Makefile", "README.md", "a/b.v", *refused])] == refused


def test_every_folder_is_distributed():
    """setup.py finds the packages below its rooms, if each has an ``__init__.py``."""
    rooms = ast.literal_eval(next(n.value for n in parse(ROOT / "setup.py").body if isinstance(n, ast.Assign)))
    assert {"tilewright", *rooms} == set(FOLDERS)
    report(
        f"{path.parent}: has no __init__.py"
        for path in python_files(*FOLDERS)
        if not (path.parent / "__init__.py").exists()
    )


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = chain(project["dependencies"], *project["optional-dependencies"].values())
    report(f"{name} is not pinned with ==" for name in requirements if not re.search(r"==|^tilewright\[", name))


def test_every_file_of_tests_is_collected():
    paths = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    files = {file for path in paths for file in ROOT.glob(path if path.endswith(".py") else f"{path}/**/test_*.py")}
    assert files == {*(ROOT / "tests").rglob("test_*.py")}, "testpaths in pyproject.toml misses a test"
