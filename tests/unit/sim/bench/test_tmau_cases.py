"""The benchmark's transfers: legal commands with something to move, named apart."""

from tilewright.golden import check_word
from tilewright.golden.spec import COMMAND, FORMATS, Opcode
from tilewright.golden.tmau.limits import limits
from tilewright.golden.tmau.setup import check_command
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.bench.tmau_cases import BLOCK_BYTES, BOXES, copy_cases, few_cases, steady_cases

SMEM_BYTES = TMAU_PRESETS["ecp5"].smem.size_bytes


def test_every_command_is_legal_and_moves_something():
    for case in (*steady_cases(), *few_cases()):
        assert check_word(int.from_bytes(case.tmap.pack(), "little")) is None, case.name
        assert len(case.coords) == BOXES
        assert footprint(case.tmap) <= SMEM_BYTES
        for coords in case.coords:
            command = COMMAND.unpack(COMMAND.pack(**{"opcode": Opcode.LOAD, "coords": coords} | case.fields))
            assert check_command(command, case.tmap, SMEM_BYTES) is None, (case.name, coords)
            least = limits(case.tmap, coords, 16, offsets=case.fields.get("offsets", (0, 0, 0)))
            assert least.words or least.lines, case.name


def test_copies_name_fields_of_their_format():
    names = {field.name for field in FORMATS[Opcode.COPY_BLOCK].fields}
    assert all(set(case.fields) <= names for case in copy_cases())
    assert BLOCK_BYTES % 128 == 0


def test_names_differ():
    names = [case.name for case in (*steady_cases(), *copy_cases())]
    assert len(set(names)) == len(names)
