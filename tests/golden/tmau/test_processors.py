"""Windows of processors that share a unit: which one confines a command, and where they are set."""

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, Windows, command_word
from tilewright.golden.spec import Error, Space
from tilewright.golden.spec.cluster.registers import CLUSTER_REGISTERS
from tilewright.golden.spec.tmau.processors import own_tag_bits, processor_of, processor_registers
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS

UNIT = Windows(global_=(0, 0x1FFF), shared=(0, 1023))
OWN = [Windows(), Windows(global_=(0x1000, 0x2FFF)), Windows(global_=(0x2000, 0x2FFF), shared=(512, 2047))]


def refused(tag, source, destination):
    """Whether a copy to shared memory is refused, on a unit with three processors."""
    machine = Machine(Memory(np.ones(0x4000, np.uint8)), np.zeros(4096, np.uint8), windows=UNIT, processors=OWN)
    word = command_word("copy_block", tag=tag, source=source, destination=destination, size=16,
                        destination_space=Space.SHARED)  # fmt: skip
    moved = machine.execute(word)
    assert [(error.code, error.tag) for error in machine.errors] == ([(Error.WINDOW, tag)] if moved is None else [])
    assert machine.smem.any() == (moved is not None)
    return moved is None


@pytest.mark.parametrize(
    ("processor", "source", "destination", "inside"),
    [
        (0, 0x1FF0, 1008, True), (0, 0x2000, 0, False), (0, 0, 1024, False),
        (1, 0x1FF0, 1008, True), (1, 0x1000, 0, True), (1, 0x0FF0, 0, False), (1, 0x2000, 0, False),
        (2, 0x1000, 512, False), (2, 0x2000, 512, False),
    ],
)  # fmt: skip
def test_commands_lie_in_the_windows_of_the_processor_and_of_the_unit(processor, source, destination, inside):
    """Those of processor 2 have no page in common, so that nothing global is allowed."""
    assert refused(processor << 14 | 0x1234, source, destination) != inside


def test_what_two_windows_have_in_common():
    assert UNIT.within(Windows()) == Windows().within(UNIT) == UNIT
    both = UNIT.within(Windows(global_=(0x1FFF, 0x1FFF), shared=(0, 4095)))
    assert both == Windows(global_=(0x1FFF, 0x1FFF), shared=(0, 1023))
    assert both.hold_global(0x1000, 4096, 32) and not both.hold_global(0x0FFF, 1, 32), "whole pages"
    none = UNIT.within(OWN[2])
    assert not none.hold_global(0x1FF0, 16, 32) and not none.hold_global(0x2000, 16, 32) and none.hold_shared(512, 16)


def test_the_number_is_in_the_upper_bits_of_a_tag():
    assert [own_tag_bits(count) for count in (1, 2, 3, 4, 5, 16)] == [16, 15, 14, 14, 13, 12]
    assert [processor_of(tag, 3) for tag in (0x3FFF, 0x4000, 0xBFFF)] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^a tag must have the number of one of 3 processors .*, not 0xc000$"):
        processor_of(0xC000, 3)


def test_registers_have_places_of_their_own():
    table = TMAU_REGISTERS + CLUSTER_REGISTERS + processor_registers(16)
    assert len({register.offset for register in table}) == len({register.name for register in table}) == len(table)
    offsets = {register.name: register.offset for register in table}
    for number in range(16):
        first = offsets[f"windows_{number}"]
        assert first == 0x200 + 32 * number
        assert [offsets[name] - first for name in UNIT.registers(number)] == [4, 8, 12, 16, 20, 24, 0]
    assert processor_registers(1) == ()
    assert [register.name for register in processor_registers(2, windows=False)] == ["processors"]


def test_mistakes():
    memories = Memory(np.ones(16, np.uint8)), np.zeros(1024, np.uint8)
    with pytest.raises(TypeError, match=r"^windows must be golden.Windows, not 5$"):
        Machine(*memories, processors=[Windows(), 5])
    with pytest.raises(ValueError, match=r"^the number of processors must be 0 to 16, not 17$"):
        Machine(*memories, processors=[Windows()] * 17)
    with pytest.raises(ValueError, match="windows need the feature windows"):
        Machine(*memories, features=(), processors=[UNIT, UNIT])
