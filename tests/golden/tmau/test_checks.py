"""Windows of processors that share a unit, and commands that need missing features."""

import numpy as np
import pytest

from tilewright.golden import ErrorRecord, GlobalMemory, Machine, Memory, TensorMap, Windows, command_word
from tilewright.spec import BLOCK, COMMAND, COMMAND_FIELD, DESCRIPTOR, LANES, Error, Space
from tilewright.spec.cluster import CLUSTER_REGISTERS
from tilewright.spec.tmau_registers import (
    FEATURES,
    TMAU_REGISTERS,
    features,
    own_tag_bits,
    processor_of,
    processor_registers,
)

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


def test_intersection_of_windows():
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


PLAIN = {"element": "f16", "size": (16, 8, 4), "stride": (32, 256), "box": (8, 4, 1), "address": 4096}
IM2COL = PLAIN | {"mode": "im2col", "box": (), "lower": (0,), "upper": (0,), "channels": 8, "pixels": 4}
INTERLEAVED = PLAIN | {"interleave": "16B", "box": (4, 1, 1), "stride": (256, 256)}
LOAD, STORE = {"opcode": "load"}, {"opcode": "store"}
ADD = {"opcode": "reduce", "reduction": "add"}
COPY = {"opcode": "copy_block", "source": 512, "destination": 1024, "size": 64}
TO_SHARED, TO_GLOBAL = {"destination_space": "shared"}, {"source_space": "shared"}
WITHIN = {"source_space": "shared", "destination_space": "shared"}
CHANNELS = {"opcode": "lanes", "element": "u8", "shape": (4, 2, 2, 1), "lanes_log2": 1, "eu_log2": 2}
TO_LANES = CHANNELS | {"source": 512, "destination_layout": "compact"}
FROM_LANES = CHANNELS | {"source_layout": "compact", "destination": 512}
BETWEEN_LANES = CHANNELS | {"source_layout": "compact", "destination_layout": "aligned", "destination": 64}

#: A feature, a map or None, a command, and the field that asks for the feature: of the descriptor, or of the command.
ASKING = [
    ("im2col", IM2COL, LOAD, "mode"),
    ("interleave", INTERLEAVED, LOAD, "interleave"),
    ("unaligned", PLAIN | {"unaligned": True}, LOAD, "unaligned"),
    ("gather", PLAIN | {"gather0": True}, LOAD, "gather0"),
    ("gather", PLAIN | {"traversal": (1, 2, 1)}, LOAD, "traversal"),
    ("gather", INTERLEAVED | {"traversal": (2, 1, 1)}, LOAD, "traversal"),
    ("swizzle", PLAIN | {"swizzle": "32B"}, LOAD, "swizzle"),
    ("tf32", PLAIN | {"element": "tf32"}, LOAD, "element"),
    ("tf32", PLAIN | {"element": "tf32"}, STORE, "element"),
    ("stores", PLAIN, STORE, COMMAND.index("opcode")),
    ("stores", None, COPY | TO_GLOBAL, BLOCK.index("destination_space")),
    ("stores", None, FROM_LANES, LANES.index("destination_layout")),
    ("reductions_global", PLAIN, ADD, COMMAND.index("opcode")),
    ("reductions_global", None, COPY | TO_GLOBAL | {"reduction": "add", "element": "u32"}, BLOCK.index("reduction")),
    ("reductions_global", None, {"opcode": "replace", "descriptor": 2048}, 0),
    ("reductions_shared", None, COPY | TO_SHARED | {"reduction": "or", "element": "u32"}, BLOCK.index("reduction")),
    ("reductions_float", PLAIN, ADD, "element"),
    ("reductions_float", None, COPY | TO_SHARED | {"reduction": "add", "element": "f32"}, BLOCK.index("element")),
    ("reductions_float", None, COPY | TO_GLOBAL | {"reduction": "min", "element": "bf16"}, BLOCK.index("element")),
    ("lanes", None, TO_LANES, LANES.index("opcode")),
    ("local_copies", None, COPY, BLOCK.index("destination_space")),
    ("local_copies", None, COPY | WITHIN, BLOCK.index("destination_space")),
    ("local_copies", None, BETWEEN_LANES, LANES.index("destination_layout")),
]
#: Commands and maps that do not need a feature, though similar ones do.
NOT_ASKING = [
    ("gather", PLAIN | {"traversal": (2, 1, 1)}, LOAD),  # nothing steps in dimension 0
    ("gather", IM2COL | {"traversal": (1, 2, 1), "gather0": True}, LOAD),
    ("interleave", PLAIN | {"swizzle": "32B"}, LOAD),
    ("tf32", PLAIN | {"element": "f32"}, LOAD),
    ("stores", None, COPY | TO_SHARED),
    ("reductions_global", PLAIN, STORE),
    ("reductions_global", None, COPY | TO_SHARED | {"reduction": "add", "element": "u32"}),
    ("reductions_shared", PLAIN, ADD),
    ("reductions_float", PLAIN | {"element": "u16"}, STORE),
    ("reductions_float", None, COPY | TO_SHARED | {"element": "f32"}),
    ("local_copies", None, TO_LANES),
]
#: Features that need the one that is missing are missing too.
WITH = {"stores": ("reductions_global", "local_copies")}


def machine(missing=()):
    names = [name for name in FEATURES if name not in (missing, *WITH.get(missing, ()))]
    gmem = GlobalMemory(16384)
    return Machine(gmem, np.zeros(4096, np.uint8), features=names)


def outcome(on, tmap, command):
    """Runs the command; returns its error record, or None."""
    if tmap:
        on.gmem.write(2048, TensorMap(**tmap).pack())
        command = command | {"descriptor": 2048}
    on.execute(command_word(**command, tag=3))
    return on.errors[0] if on.errors else None


@pytest.mark.parametrize(("feature", "tmap", "command", "field"), ASKING)
def test_commands_with_a_missing_feature(feature, tmap, command, field):
    number = DESCRIPTOR.index(field) if isinstance(field, str) else COMMAND_FIELD + field
    lacking = machine(feature)
    lacking.gmem.write(2048, TensorMap(**PLAIN).pack())
    before = lacking.gmem.read(0, 2048).copy(), lacking.smem.copy()
    assert outcome(lacking, tmap, command) == ErrorRecord(Error.UNSUPPORTED, 3, number, 0)
    assert (lacking.gmem.read(0, 2048) == before[0]).all() and (lacking.smem == before[1]).all()
    record = outcome(machine(), tmap, command)
    assert record is None or command["opcode"] == "replace", record


@pytest.mark.parametrize(("feature", "tmap", "command"), NOT_ASKING)
def test_commands_without_the_feature(feature, tmap, command):
    assert outcome(machine(feature), tmap, command) is None


def test_order_of_errors():
    """After version and reserved bits, before all other rules."""
    lacking = machine("im2col")
    bent = bytearray(TensorMap(**IM2COL).pack())
    bent[1] &= ~7  # rank 0
    lacking.gmem.write(2048, bytes(bent))
    lacking.execute(command_word("load", descriptor=2048))
    bent[0] = 2
    lacking.gmem.write(2048, bytes(bent))
    lacking.execute(command_word("load", descriptor=2048))
    assert [record.code for record in lacking.errors] == [Error.UNSUPPORTED, Error.VERSION]


def test_misaligned_descriptors_come_first():
    lacking = machine("stores")
    lacking.execute(command_word("store", descriptor=2049))
    lacking.execute(command_word("store", descriptor=1 << 40))
    assert [record.code for record in lacking.errors] == [Error.DESCRIPTOR_ALIGNMENT, Error.UNSUPPORTED]


def test_windows_need_their_feature():
    with pytest.raises(ValueError, match="windows need the feature windows"):
        Machine(GlobalMemory(64), np.zeros(256, np.uint8), windows=Windows(shared=(0, 127)), features=())


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        ("stores", TypeError, "features must be a list or tuple, not 'stores'"),
        (["store"], ValueError, "features must be of im2col, .*, not 'store'"),
        (["reductions_global"], ValueError, "feature reductions_global needs stores"),
        (["reductions_float"], ValueError, "feature reductions_float needs reductions_global or reductions_shared"),
        (["local_copies"], ValueError, "feature local_copies needs stores"),
    ],
)
def test_impossible_features(names, kind, message):
    with pytest.raises(kind, match=message):
        features(names)


def test_features_come_in_their_order():
    assert features(["stores", "im2col", "stores"]) == ("im2col", "stores")
