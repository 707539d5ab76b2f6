"""Mutants: sources of the hardware with one small change each, as a designer might mistype them."""

import ast
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

__all__ = ["HARDWARE", "Mutant", "changed_function", "mutants_of", "sample"]

#: Folder of the sources that are changed.
HARDWARE = Path(__file__).parents[2] / "hw"

#: What takes the place of an operator.
_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Invert: ast.UAdd, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_METHODS = {"any": "all", "all": "any"}
_CONDITIONS = ("If", "Elif")
#: Methods that make no hardware.
_SOFTWARE = ("__init__", "__repr__", "__eq__", "__hash__", "__post_init__")
#: Arguments that name things.
_NAMES = ("name", "src_loc_at")


@dataclass(frozen=True)
class Mutant:
    """One change of a file.

    Attributes
    ----------
    path : str
        The file, relative to :data:`HARDWARE`.
    index : int
        Of the change among all of the file.
    line : int
    change : str
        What is changed, and how.
    """

    path: str
    index: int
    line: int
    change: str

    def __str__(self):
        return f"hw/{self.path}:{self.line}: {self.change}"


def mutants_of(path):
    """All mutants of a file."""
    changes = _changes(ast.parse((HARDWARE / path).read_text(encoding="utf-8")))
    return [Mutant(path, index, line, change) for index, (line, change, _) in enumerate(changes)]


def sample(path, count, seed):
    """At most ``count`` mutants of a file; a larger sample begins with the smaller one."""
    found = mutants_of(path)
    random.Random(f"{seed} {path}").shuffle(found)
    return found[:count]


def changed_function(mutant):
    """The names that lead from the module to the function that a mutant changes, and the changed function's code.

    The code calls ``tilewright_mutant_runs`` in the module before each run of the changed statement.
    """
    path = HARDWARE / mutant.path
    tree = ast.parse(path.read_text(encoding="utf-8"))
    list(_changes(tree))[mutant.index][2]()
    _announce(tree, mutant.line)
    names, place = [], tree
    while not isinstance(place, ast.FunctionDef):
        place = next(node for node in place.body if _has(node, mutant.line))
        names.append(place.name)
    code = compile(ast.fix_missing_locations(tree), str(path), "exec")
    for name in names:
        code = next(each for each in code.co_consts if getattr(each, "co_name", None) == name)
    return names, code


def _announce(tree, line):
    """Puts a call of ``tilewright_mutant_runs`` before the innermost statement of a line."""
    blocks = [block for node in ast.walk(tree) for field in ("body", "orelse")
              if isinstance(block := getattr(node, field, None), list)]  # fmt: skip
    for block in reversed(blocks):  # outer ones come first
        for place, statement in enumerate(block):
            if _has(statement, line):
                call = ast.parse("tilewright_mutant_runs(1)").body[0]
                block.insert(place, ast.copy_location(call, statement))
                return


def _has(node, line):
    return node.lineno <= line <= node.end_lineno


def _changes(tree):
    """Yields line, description and function of every change that the tree can have.

    Changed is what describes hardware: bodies of functions, without constructors and without checks of parameters.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nested = {id(inner) for outer in functions for inner in ast.walk(outer) if inner is not outer}
    for function in functions:
        checks = any(isinstance(node, ast.Raise) for node in ast.walk(function))
        if function.name not in _SOFTWARE and id(function) not in nested and not checks:
            for statement in function.body:
                yield from _in(statement)
            yield from _dropped(function)


def _dropped(function):
    """Changes that leave out an assignment, or a call for its effect."""
    for parent in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(parent, field, None)
            if not isinstance(block, list):
                continue
            for place, node in enumerate(block):
                if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List) and len(node.value.elts) > 1:
                    for element in node.value.elts:
                        yield element.lineno, f"without {_text(element)}", partial(node.value.elts.remove, element)
                elif _has_effect(node):
                    nothing = ast.copy_location(ast.Pass(), node)
                    yield node.lineno, f"without {_text(node)}", partial(block.__setitem__, place, nothing)


def _has_effect(node):
    """Whether a statement adds to the module: ``m.d.… += …``, ``m.next = …`` or a call that is given the module."""
    if isinstance(node, ast.AugAssign):
        return _text(node.target).startswith("m.d.")
    if isinstance(node, ast.Assign):
        return _text(node.targets[0]) == "m.next"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _in(node):
    """Changes of an expression or statement and of all inside it."""
    match node:
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.BoolOp(op=op) if type(op) in _SWAPS:
            yield _set(node, "op", _SWAPS[type(op)](), node)
        case ast.Compare(ops=[op]) if type(op) in _SWAPS:
            yield _set(node, "ops", [_SWAPS[type(op)]()], node)
        case ast.Constant(value=int() as value):
            changed = not value if isinstance(value, bool) else value - 1 if value % 2 else value + 1
            yield _set(node, "value", changed, node)
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in _METHODS:
            yield _set(node.func, "attr", _METHODS[name], node)
        case ast.Call(func=ast.Attribute(attr=name), args=[condition]) if name in _CONDITIONS:
            negated = ast.Compare(condition, [ast.Eq()], [ast.Constant(0)])
            yield _set(node, "args", [negated], node)
        case ast.Call(func=ast.Name(id="Mux"), args=[condition, yes, no]):
            yield _set(node, "args", [condition, no, yes], node)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr) and not (isinstance(child, ast.keyword) and child.arg in _NAMES):
            yield from _in(child)


def _set(node, field, value, whole):
    """A change of a field of ``node``, with ``whole`` before and after it as its description."""
    before, kept = _text(whole), getattr(node, field)
    setattr(node, field, value)
    after = _text(whole)
    setattr(node, field, kept)
    return whole.lineno, f"{before} becomes {after}", partial(setattr, node, field, value)


def _text(node):
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
