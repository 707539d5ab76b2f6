"""Hierarchical names in generated Verilog: where a submodule or memory of Amaranth ended up."""

import re
from functools import lru_cache

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
    begins = _begins(verilog)
    if module not in begins:
        raise ValueError(f"there is no module {module!r} in the Verilog")
    return verilog[begins[module] : verilog.index("\nendmodule", begins[module])]


# A bench looks for a dozen memories in the same text, which is long.
@lru_cache(maxsize=1)
def _begins(verilog):
    """Where the body of each module begins; the first one of a name counts."""
    matches = reversed(list(_MODULE.finditer(verilog)))
    return {_bare(match[1]): match.end() for match in matches}


def _bare(identifier):
    return identifier.removeprefix("\\").rstrip()


def _find(wanted, candidates, module):
    for name in candidates:
        if re.sub(r"\$\d+$", "", name) == wanted:
            return name
    raise ValueError(f"module {module!r} has no {wanted!r}, only {', '.join(sorted(candidates)) or 'nothing'}")
