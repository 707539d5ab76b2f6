"""Hierarchical names in generated Verilog: where a submodule or memory of Amaranth ended up."""

import re

__all__ = ["hierarchical_name"]

# As Yosys lays its output out: a module, an instance, a memory each begin a line.
_IDENTIFIER = r"(\\\S+ |[A-Za-z_]\w*)"
_MODULE = re.compile(rf"^module {_IDENTIFIER} ?\(", re.MULTILINE)
_INSTANCE = re.compile(rf"^  {_IDENTIFIER} (?:#\([^;]*?\n  \) )?{_IDENTIFIER} ?\(\n", re.MULTILINE)
_MEMORY = re.compile(rf"^  reg \[[^]]+\] {_IDENTIFIER} ?\[[^]]+\];", re.MULTILINE)


def hierarchical_name(verilog, top, path):
    """The name, seen from inside the module ``top``, of what the source calls ``path``.

    A name that was already taken in its module has got a suffix: ``banks`` has become ``banks$102``.

    Parameters
    ----------
    verilog : str
        As ``to_verilog`` gives it; a memory may also lie in a handwritten module.
    path : str
        Names of submodules and then of a memory, joined by dots.

    Raises
    ------
    ValueError
        If there is no such thing.
    """
    *instances, memory = path.split(".")
    module, names = top, []
    for instance in instances:
        body = _body(verilog, module)
        candidates = {_bare(name): (_bare(kind), name) for kind, name in _INSTANCE.findall(body)}
        module, name = candidates[_find(instance, candidates, module)]
        names.append(name)
    memories = {_bare(name): name for name in _MEMORY.findall(_body(verilog, module))}
    return ".".join([*names, memories[_find(memory, memories, module)]])


def _body(verilog, module):
    for match in _MODULE.finditer(verilog):
        if _bare(match[1]) == module:
            return verilog[match.end() : verilog.index("\nendmodule", match.end())]
    raise ValueError(f"there is no module {module!r} in the Verilog")


def _bare(identifier):
    return identifier.removeprefix("\\").rstrip()


def _find(wanted, candidates, module):
    for name in candidates:
        if re.sub(r"\$\d+$", "", name) == wanted:
            return name
    raise ValueError(f"module {module!r} has no {wanted!r}, only {', '.join(sorted(candidates)) or 'nothing'}")
