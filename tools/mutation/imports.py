"""Which files of the repository a file imports, and the tests of a file of hardware."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "closure", "module_name", "proofs_of", "unit_tests_of"]

ROOT = Path(__file__).parents[2]


def module_name(path):
    """Name under which a file of the repository, relative to its root, is imported."""
    parts = Path(path).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts[1:] if parts[0] == "tests" else parts if parts[0] == "tilewright" else ("tilewright", *parts))


@cache
def _imported(path):
    """Files that a file imports itself, and the packages that it and they are in."""
    found = {place / "__init__.py" for place in path.parents if (ROOT / place / "__init__.py").is_file()}
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1].parts if node.level else ()
            prefix = ".".join((*base, *([node.module] if node.module else ())))
            names = [prefix, *(f"{prefix}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            found.update(_files(name))
    return found


def _files(name):
    """Files that an import of a module loads, if it is ours."""
    parts = name.split(".")
    if parts[0] == "tilewright" and len(parts) > 1 and not (ROOT / "tilewright" / f"{parts[1]}.py").exists():
        parts = parts[1:]
    elif parts[0] == "support":
        parts = ["tests", *parts]
    for length in range(1, len(parts) + 1):
        here = Path(*parts[:length])
        for file in (here / "__init__.py", here.with_suffix(".py")):
            if (ROOT / file).is_file():
                yield file


@cache
def closure(path):
    """All files of the repository that a file needs, itself among them."""
    found, waiting = set(), [path]
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting += _imported(one)
    return frozenset(found)


def unit_tests_of(path):
    """Unit tests of a file of ``hw/``: those with its name, or those of its folder that import it, or of its users."""
    home = Path(path)
    folder = Path("tests/unit", *home.parts[1:-1])
    tests = sorted((ROOT / folder).glob("test_*.py"))
    # test_a_b.py is of a_b.py if there is one, otherwise of a.py.
    longer = [one.stem for one in (ROOT / home).parent.glob(f"{home.stem}_*.py")]
    named = [one.relative_to(ROOT) for one in tests
             if _is_of(one, home.stem) and not any(_is_of(one, stem) for stem in longer)]  # fmt: skip
    return named or _importers(folder, home) or _tests_of_users(home)


def _is_of(test, stem):
    return f"{test.stem}_".startswith(f"test_{stem}_")


def proofs_of(path):
    """Proofs in the folder of a file of ``hw/`` that import it."""
    return _importers(Path("tests/formal", *Path(path).parts[1:-1]), Path(path))


def _tests_of_users(path):
    users = [one.relative_to(ROOT) for one in sorted((ROOT / "hw").rglob("*.py")) if one.name != "__init__.py"]
    return [test for user in users if path in _imported(user) and user != path for test in unit_tests_of(user)]


def _importers(folder, path):
    files = [one.relative_to(ROOT) for one in sorted((ROOT / folder).glob("test_*.py"))]
    return [one for one in files if path in _imported(one)]
