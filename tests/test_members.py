"""The "Members" sections of docstrings say what the code says: names, directions and shapes of every component's ports.

A section holds declarations, each followed by its text, indented::

    name : In(SHAPE)
    first, second : Out(SHAPE)
    name : In(SHAPE) if condition
    **members_of_a_bundle(params)
    *kinds of names* : In(SHAPE)

SHAPE and condition are Python, read in the module with the constructor's arguments, ``signed`` and ``unsigned`` as
names. ``stream of SHAPE`` and ``stream of SHAPE, always ready`` are streams, ``array of N SHAPE`` is an array of ports
or of shapes, and a class of layouts or signatures stands for whatever it makes. ``**`` takes over the members of a
dict; names in ``*…*`` are made when the component is, and not compared.
"""

import importlib
import inspect
import re
from itertools import product
from pathlib import Path, PurePosixPath

import pytest
from amaranth.hdl import Shape, ShapeCastable, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright import hw
from tilewright.board.top import BoardParams
from tilewright.hw.bus.axi4 import _Axi4Signature
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.job.calculator import Step
from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.core.params import CORE_PRESETS, CoreParams, ProgramParams
from tilewright.hw.core.top import core_regions
from tilewright.hw.lib.component import Port
from tilewright.hw.pe.compute import MacArray
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.reduce.floats import BF16, F16
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec.conv import CONV_PRESETS
from tilewright.spec.tmau_registers import TMAU_REGISTERS

HW = Path(hw.__file__).parent

#: Classes that are there to be inherited from.
BASES = {Port, _Axi4Signature}

#: A core with everything.
PROGRAM = CORE_PRESETS["unit"].replace(conv=CONV_UNIT_PRESETS["unit"], program=ProgramParams())

#: ``params`` of the components of a folder, and of folders and modules in it that have others.
PARAMS = {
    "board": BoardParams(),
    "cluster": (ClusterParams(2, CoreParams(TMAU_PRESETS["unit"])), ClusterParams(2, CoreParams(TMAU_PRESETS["unit"]), L2Params(4096, 2))),
    "cluster/barriers": TMAU_PRESETS["unit"].smem,
    "cluster/network": TMAU_PRESETS["unit"].smem,
    "conv": (
        ConvUnitParams(CONV_PRESETS["unit"]),
        ConvUnitParams(CONV_PRESETS["unit"].replace(types=("i8", "f16"))),
    ),
    "conv/post": CONV_PRESETS["unit"],
    "core": CORE_PRESETS["unit"],
    "core/program": PROGRAM,
    "core/program/barriers": TMAU_PRESETS["unit"].smem,
    "pe": PE_PRESETS["unit"],
    "smem": TMAU_PRESETS["unit"].smem,
    "tmau": TMAU_PRESETS["unit"],
    **dict.fromkeys(
        ("tmau/datapath", "tmau/subsystem", "tmau/top", "tmau/unit", "tmau/walk/run_router"),
        (TMAU_PRESETS["unit"], TMAU_PRESETS["unit"].replace(prefetches=True)),
    ),
}

#: Other arguments by their names, unless they have defaults.
ARGUMENTS = {
    "addr_width": 32, "answer": unsigned(7), "array": lambda: MacArray(PE_PRESETS["unit"]), "bit": 12,
    "bits": 9, "bursts": 4, "bus_bytes": 16,
    "cores": 3, "count": 4, "count_width": 9, "counted": {"one": 1, "two": 2}, "cycles_per_bit": 25,
    "data_width": 128, "depth": 4, "entries": 4,
    "floats": True, "formats": (F16, BF16),
    "geometry": L2Params(4096, 2).geometry(32, 128, 3), "groups": 4, "id_width": 2, "lanes": 8, "latency": 8,
    "length": 13, "levels": 5, "max_burst": 4,
    "max_outstanding": 4, "n": 3, "number": 1, "numbers": ("x", "row"), "own": 1, "page_width": 20, "places": 22,
    "quantum": 8, "regions": core_regions(PROGRAM),
    "request": unsigned(6), "row_bytes": 16, "row": lambda: lambda item: item, "shape": unsigned(5),
    "size_bytes": 4096, "sizes": (4, 8), "steps": (Step("a", "b", when="c", keep="d"),), "table": TMAU_REGISTERS,
    "tag": unsigned(2), "tag_width": 6, "tags": (unsigned(2), unsigned(3)),
    "unit_bytes": 4, "wide": True, "width": 56, "width_bytes": 16, "widths": (3, 2), "words": 8, "word_width": 28,
}  # fmt: skip

_NAME = r"\**\w[\w ,-]*\**"
_DECLARATION = re.compile(rf"(?P<names>{_NAME}) : (?P<flow>In|Out)\((?P<shape>.*)\)(?: if (?P<condition>.+))?")


class _Stream:
    """``stream of SHAPE`` as a declaration says it."""

    def __init__(self, payload, always_ready=False):
        self.payload = payload
        self.always_ready = always_ready

    def allows(self, signature):
        return (
            isinstance(signature, stream.Signature)
            and not signature.always_valid
            and signature.always_ready == self.always_ready
            and _allows(self.payload, signature.members["payload"].shape)
        )


class _Array:
    """``array of N SHAPE`` as a declaration says it."""

    def __init__(self, length, element):
        self.length = length
        self.element = element

    def allows(self, shape):
        return (
            isinstance(shape, data.ArrayLayout)
            and shape.length == self.length
            and _allows(self.element, shape.elem_shape)
        )


def _parsed(text, names):
    """What a SHAPE stands for: a shape, a signature, a class of them, or one of the two classes above."""
    text = text.strip()
    if match := re.fullmatch(r"stream of (.+?)(, always ready)?", text):
        return _Stream(_parsed(match[1], names), bool(match[2]))
    if match := re.fullmatch(r"array of (\S+) (.+)", text):
        return _Array(eval(match[1], names), _parsed(match[2], names))
    return eval(text, names)


def _allows(declared, actual):
    """Whether a shape or signature is what was declared."""
    if isinstance(declared, _Stream | _Array):
        return declared.allows(actual)
    if isinstance(declared, type):
        return actual is declared or type(actual) is declared
    layouts = (ShapeCastable, wiring.Signature)
    if isinstance(declared, layouts) or isinstance(actual, layouts):
        return type(declared) is type(actual) and declared == actual
    return Shape.cast(declared) == Shape.cast(actual)


def _member_allows(declared, member):
    for length in member.dimensions:
        if not isinstance(declared, _Array) or declared.length != length:
            return False
        declared = declared.element
    if member.is_port:
        return _allows(declared, member.shape)
    return _allows(declared, member.signature if member.flow == Out else member.signature.flip())


def differences(docstring, members, names):
    """What is wrong with a docstring, a line each.

    Parameters
    ----------
    docstring : str
    members : mapping of str to wiring.Member
    names : dict
        What expressions may use.
    """
    section = re.search(r"^Members\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.cleandoc(docstring or ""), re.S | re.M)
    if section is None:
        return ["no section Members"] if members else []
    members = dict(members.items())
    wrong, said, open_ended = [], set(), False
    for line in section[1].splitlines():
        if not line or line.startswith(" "):
            continue
        if line.startswith("**"):
            for name, member in eval(line[2:], dict(names)).items():
                said.add(name)
                if members.get(name) != member:
                    wrong.append(f"{line}: {name} is {members.get(name)!r}")
            continue
        match = _DECLARATION.fullmatch(line)
        if match is None:
            wrong.append(f"{line}: not understood")
            continue
        if match["names"].startswith("*"):
            open_ended = True
            continue
        if match["condition"] and not eval(match["condition"], dict(names)):
            continue
        try:
            declared = _parsed(match["shape"], dict(names))
        except Exception as error:
            wrong.append(f"{line}: {error}")
            declared = None
        for name in match["names"].split(", "):
            if name in said:
                wrong.append(f"{name}: twice")
            said.add(name)
            member = members.get(name)
            if member is None:
                wrong.append(f"{name}: no such member")
            elif member.flow.name != match["flow"]:
                wrong.append(f"{name}: not {match['flow']}")
            elif declared is not None and not _member_allows(declared, member):
                wrong.append(f"{name}: not {match['shape']} but {member!r}")
    return wrong + [f"{name}: missing" for name in members if name not in said and not open_ended]


def _classes():
    """Every component and signature of ``hw/`` as a parameter."""
    for path in sorted(HW.rglob("*.py")):
        place = path.relative_to(HW).with_suffix("").as_posix()
        module = importlib.import_module("tilewright.hw." + place.replace("/", ".").removesuffix(".__init__"))
        for name, value in vars(module).items():
            bundle = isinstance(value, type) and issubclass(value, wiring.Component | wiring.Signature)
            if bundle and value.__module__ == module.__name__ and value not in BASES:
                yield pytest.param(place, value, id=f"{place}:{name}")


def _folders(place):
    """The folders that a module lies in, from the innermost to the outermost one."""
    return [parent.as_posix() for parent in Path(place).parents]


def _constructions(place, cls):
    """Arguments to construct ``cls`` with: both values of those that are true or false."""
    choices = {}
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        if name == "params":
            places = [place, *(folder.as_posix() for folder in PurePosixPath(place).parents)]
            found = next(PARAMS[each] for each in places if each in PARAMS)
            choices[name] = found if isinstance(found, tuple) else (found,)
        elif isinstance(parameter.default, bool):
            choices[name] = (False, True)
        elif parameter.default is not parameter.empty:
            choices[name] = (parameter.default,)
        elif parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            value = ARGUMENTS[name]
            choices[name] = (value() if callable(value) else value,)
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


@pytest.mark.parametrize(("place", "cls"), list(_classes()))
def test_members_are_as_documented(place, cls):
    names = {"signed": signed, "unsigned": unsigned} | vars(importlib.import_module(cls.__module__))
    for arguments in _constructions(place, cls):
        made = cls(**arguments)
        signature = made if isinstance(made, wiring.Signature) else made.signature
        wrong = differences(cls.__doc__, signature.members, names | arguments)
        assert not wrong, "\n".join(wrong)


class _Pair(data.StructLayout):
    def __init__(self, width):
        super().__init__({"a": width, "b": width})


_MEMBERS = wiring.SignatureMembers(
    {
        "i": In(stream.Signature(_Pair(3))),
        "o": Out(stream.Signature(unsigned(4), always_ready=True)),
        "x": In(stream.Signature(2)).array(3),
        "y": Out(data.ArrayLayout(4, 2)),
        "k": In(5),
    }
)
_RIGHT = """A component.

Members
-------
i : In(stream of _Pair)
    Text (with : colons).
o : Out(stream of w, always ready)
x : In(array of 3 stream of 2)
y : Out(array of 2 w)
**others()
gone : In(7) if w == 5

Attributes
----------
z : int
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("", "", None),
        ("i : In(", "i : Out(", "i: not Out"),
        ("x : In(array of 3 stream of 2)\n", "", "x: missing"),
        ("x : In(array of 3", "x : In(array of 2", "x: not array"),
        ("x : In(array of 3 stream of 2)", "x : In(stream of 2)", "x: not stream"),
        ("array of 2 w", "8", "y: not 8"),
        ("array of 2 w", "array of 2 5", "y: not array"),
        ("stream of _Pair", "stream of _Pair(4)", "i: not stream"),
        ("stream of _Pair", "stream of 6", "i: not stream"),
        ("stream of _Pair", "_Pair", "i: not _Pair"),
        (", always ready", "", "o: not stream"),
        ("Out(stream of w", "Out(stream of signed(4)", "o: not stream"),
        ("gone : In(7) if w == 5", "gone : In(7)", "gone: no such member"),
        ("**others()\n", "", "k: missing"),
        ("**others()", "k : In(w)", "k: not w"),
        ("**others()", "**others()\nk : In(5)", "k: twice"),
        ("**others()", "and those of others", "and those of others: not understood"),
        ("**others()", "k : In(nothing)", "k : In(nothing): name 'nothing' is not defined"),
        ("Members", "Ports", "no section Members"),
    ],
)
def test_a_difference_is_found(old, new, wrong):
    names = {"_Pair": _Pair, "w": 4, "signed": signed, "others": lambda: {"k": In(5)}}
    found = differences(_RIGHT.replace(old, new, 1), _MEMBERS, names)
    if wrong is None:
        assert not found
    else:
        assert any(line.startswith(wrong) for line in found), found


def test_names_made_later_are_not_compared():
    text = "Members\n-------\nk : In(5)\n*name of a register* : In(its fields)\n"
    assert not differences(text, _MEMBERS, {})
