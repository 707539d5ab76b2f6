"""Copies of blocks as calls have the results and refusals of commands on the machine."""

from itertools import product

import pytest

from tilewright import golden
from tilewright.golden import CommandError, Machine, Memory
from tilewright.golden.memory import mix_pattern
from tilewright.spec import Error, Opcode

SPACES = ("global", "shared")


def memories():
    return Memory(mix_pattern(1024, 1)), mix_pattern(512, 2)


@pytest.mark.parametrize(("source", "destination"), list(product(SPACES, SPACES)))
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_a_copy_is_the_machines(source, destination, reduction):
    machine = Machine(*memories())
    spaces = {"source_space": source, "destination_space": destination}
    fields = {"source": 32, "destination": 256, "size": 96, "reduction": reduction, "element": "u32"} | spaces
    machine.execute(golden.command_word(Opcode.COPY_BLOCK, **fields))
    gmem, smem = memories()
    changed = golden.copy_block(gmem=gmem, smem=smem, **fields)
    assert changed is (gmem if destination == "global" else smem)
    assert (gmem.data == machine.gmem.data).all() and (smem == machine.smem).all()
    before = memories()
    assert (gmem.data != before[0].data).any() == (destination == "global")


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        ({"source": 8}, Error.BLOCK_ALIGNMENT, "source must be a multiple of 16, not 8"),
        ({"destination": 480}, Error.BLOCK_RANGE,
         "destination 0x1e0 puts the end of the block past the 512 bytes of smem"),
        ({"size": 1024}, Error.BLOCK_RANGE, "size 0x400 puts the end of the block past the 512 bytes of smem"),
        ({"source_space": "shared", "destination": 16}, Error.OVERLAP,
         "destination 0x10 must not be in the 64 bytes of the source, 0x0"),
        ({"reduction": "add"}, Error.REDUCTION, "reduction add is not defined for u8"),
    ],
)  # fmt: skip
def test_a_refusal_is_the_machines_error_record(changes, code, sentence):
    fields = {"source": 0, "destination": 128, "size": 64, "source_space": "global", "destination_space": "shared"}
    gmem, smem = memories()
    with pytest.raises(CommandError) as caught:
        golden.copy_block(gmem=gmem, smem=smem, **fields | changes)
    assert (str(caught.value), caught.value.code) == (sentence, code)
    machine = Machine(*memories())
    assert machine.execute(golden.command_word(Opcode.COPY_BLOCK, **fields | changes)) is None
    record = machine.errors[0]
    assert (*caught.value.refusal[:2], 0) == (record.code, record.field, record.address)
    assert (smem == memories()[1]).all()


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"^source_space must be one of global, shared, not 'local'$"):
        golden.copy_block(0, 0, 16, source_space="local")
    with pytest.raises(TypeError, match=r"^gmem must be a golden.Memory, which golden.Memory\(data\) makes, not None$"):
        golden.copy_block(0, 0, 16)
    with pytest.raises(ValueError, match=r"^size must be 0 to 4294967295, not -16$"):
        golden.copy_block(0, 0, -16, *memories())


def test_a_prefetch_of_a_block_is_only_checked():
    assert golden.prefetch_block(1 << 40, 1 << 20) is None
    with pytest.raises(CommandError, match=r"^source must be a multiple of 16, not 3$"):
        golden.prefetch_block(3, 16)
