"""The benchmark's transfers: legal commands with something to move, named apart."""

from dataclasses import replace

import pytest

from tilewright.golden import check_word
from tilewright.golden.tmau.checks import check_command
from tilewright.golden.tmau.limits import limits
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.bench import tmau
from tilewright.sim.bench.tmau_cases import BLOCK_BYTES, BOXES, copy_cases, few_cases, steady_cases
from tilewright.sim.session import Session
from tilewright.spec import COMMAND, FORMATS, Opcode


@pytest.mark.parametrize("preset", ["unit", "ecp5"])
def test_every_command_is_legal_and_moves_something(preset):
    """In the two smallest shared memories of presets; larger ones have the same boxes."""
    params = TMAU_PRESETS[preset]
    smem_bytes = params.smem.size_bytes
    for case in (*steady_cases(smem_bytes), *few_cases(smem_bytes)):
        assert check_word(int.from_bytes(case.tmap.pack(), "little")) is None, case.name
        assert len(case.coords) == BOXES
        assert footprint(case.tmap) <= smem_bytes
        for coords in case.coords:
            command = COMMAND.unpack(COMMAND.pack(**{"opcode": Opcode.LOAD, "coords": coords} | case.fields))
            assert check_command(command, case.tmap, smem_bytes) is None, (case.name, coords)
            least = limits(case.tmap, coords, 16, offsets=case.fields.get("offsets", (0, 0, 0)))
            assert least.words or least.lines, case.name
    assert smem_bytes >= 2 * BLOCK_BYTES


def test_only_boxes_that_do_not_fit_are_others():
    """Where shared memory is small they have fewer rows or pixels, and their rows are as long."""
    sizes = {name: params.smem.size_bytes for name, params in TMAU_PRESETS.items()}
    assert [name for name, size in sizes.items() if steady_cases(size) != steady_cases()] == ["unit"]
    whole = {case.name: case.tmap for case in steady_cases()}
    small = {case.name: case.tmap for case in steady_cases(4096)}
    assert small.keys() == whole.keys()
    for name, tmap in small.items():
        if footprint(whole[name]) <= 4096:
            assert tmap == whole[name]
        else:
            assert 2048 < footprint(tmap) <= 4096
            assert (tmap.box[:1], tmap.channels) == (whole[name].box[:1], whole[name].channels)
    assert sum(tmap != whole[name] for name, tmap in small.items()) > 10
    assert len(list(few_cases(4096))) < len(list(few_cases()))


def test_every_line_of_the_smallest_preset_runs(monkeypatch):
    """On the RTL, with few boxes each: none is refused."""
    params = TMAU_PRESETS["unit"]
    monkeypatch.setattr(tmau, "BOXES", 3)
    cases = {name: getattr(tmau, name) for name in ("steady_cases", "few_cases")}
    for name, listed in cases.items():
        monkeypatch.setattr(tmau, name, lambda size, listed=listed: [fewer(case) for case in listed(size)])
    with Session(params=CoreParams(params), latency=10) as session:
        lines = [
            *tmau._steady(session, "unit", 10),
            *tmau._copies(session, "unit", 10),
            *tmau._few(session, "unit", 10),
        ]
    assert len(lines) == len(steady_cases(params.smem.size_bytes)) + len(list(copy_cases())) + len(few_cases(4096))
    assert all(line.measured > 0 for line in lines)


def fewer(case):
    return replace(case, coords=case.coords[:3])


def test_copies_name_fields_of_their_format():
    names = {field.name for field in FORMATS[Opcode.COPY_BLOCK].fields}
    assert all(set(case.fields) <= names for case in copy_cases())
    assert BLOCK_BYTES % 128 == 0


def test_names_differ():
    names = [case.name for case in (*steady_cases(), *copy_cases())]
    assert len(set(names)) == len(names)
