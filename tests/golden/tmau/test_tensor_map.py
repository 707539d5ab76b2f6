"""Tensor maps: words computed by hand, every rule of a descriptor with its sentence, and maps of arrays."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden import DescriptorError, TensorMap, check_word, command_word
from tilewright.spec import DESCRIPTOR, Element, Error, Fill, L2Promotion, Mode, Opcode, Swizzle

TILE = {"element": "f16", "size": (64, 9), "stride": (128,), "box": (8, 3)}
IM2COL = {"element": "u32", "size": (4, 4, 4, 2), "stride": (16, 64, 256), "mode": "im2col", "channels": 4,
          "pixels": 16, "lower": (-1, -1), "upper": (-2, -2)}  # fmt: skip


def image(size, spots):
    """``size`` bytes of zeros with hex digits at byte offsets."""
    data = bytearray(size)
    for offset, digits in spots.items():
        data[offset : offset + len(digits) // 2] = bytes.fromhex(digits)
    return bytes(data)


def test_tile_descriptor_computed_by_hand():
    tmap = TensorMap(
        **TILE, address=0x123456789ABCDEF0, traversal=(1, 2), swizzle="128B", fill="nan", l2_promotion="256B"
    )
    assert tmap.pack() == image(128, {
        0: "01",        # version 1
        1: "82",        # element f16 = 8, mode tile = 0, rank 2
        2: "dc",        # L2 promotion 256 = 3 (bits 7:6), fill NaN = 1 (5:4), swizzle 128B = 3 (3:2), interleave 0
        8: "f0debc9a78563412",
        16: "3f000000", # size 64 - 1
        20: "08000000", # size 9 - 1
        36: "0702",     # box 8 - 1, 3 - 1
        41: "10",       # traversal 1 - 1 (low nibble), 2 - 1 (high nibble)
        64: "80",       # stride 128
    })  # fmt: skip


def test_im2col_descriptor_computed_by_hand():
    tmap = TensorMap(**IM2COL, fill={"constant": 0xC0FFEE01}, unaligned=True, gather0=True)
    assert tmap.pack() == image(128, {
        0: "01",
        1: "4c",        # element u32 = 4, mode im2col = 1 (bit 3), rank 4
        2: "20",        # fill constant = 2 (5:4)
        3: "03",        # gather0 (bit 1), unaligned (bit 0)
        4: "01eeffc0",
        16: "03000000" "03000000" "03000000" "01000000",
        44: "03",       # channels 4 - 1
        45: "0f00",     # pixels 16 - 1
        48: "ffffffff", # lower -1, -1 (16 bits each)
        54: "fefffeff", # upper -2, -2
        64: "1000000000000000" "4000000000000000" "0001000000000000",
    })  # fmt: skip


def test_five_dimensions_and_largest_values_computed_by_hand():
    stride = (1 << 40) - 16
    tmap = TensorMap(element="f8e5m2", size=(1 << 32,) * 5, stride=(stride,) * 4, box=(256,) * 5, traversal=(8,) * 5)
    assert tmap.pack() == image(128, {
        0: "01e5",      # element f8e5m2 = 14, rank 5
        16: "ffffffff" * 5,
        36: "ffffffffff",
        41: "777707",
        64: "f0ffffffff000000" * 4,
    })  # fmt: skip


def test_command_computed_by_hand():
    word = command_word(
        Opcode.LOAD, signal=1, tag=0xBEEF, smem=0x400, barrier=0x18, descriptor=0x12345640, coords=(2, -1)
    )
    assert word.to_bytes(64, "little") == image(64, {
        0: "11",        # signal (bit 4), load = 1
        2: "efbe",
        4: "00040000",
        8: "18000000",
        16: "4056341200000000",
        24: "02000000" "ffffffff",
    })  # fmt: skip


@pytest.mark.parametrize(
    "fields", [TILE, IM2COL, TILE | {"fill": {"constant": 7}, "swizzle": "64B", "traversal": (3, 8)}]
)
def test_unpack_is_the_inverse_of_pack(fields):
    tmap = TensorMap(**fields)
    assert TensorMap.unpack(tmap.pack()) == tmap


def test_members_and_names_mean_the_same():
    named = TensorMap(**TILE, swizzle="64B", fill="zero", l2_promotion="none", mode="tile")
    members = TensorMap(**TILE | {"element": Element.F16}, swizzle=Swizzle.B64, fill=Fill.ZERO,
                        l2_promotion=L2Promotion.NONE, mode=Mode.TILE)  # fmt: skip
    assert named == members
    assert hash(named) == hash(members)


RULES = [
    ("RANK", "rank", 0, {"size": (), "stride": (), "box": ()}, "rank must be 1 to 5, not 0"),
    ("RANK", "rank", 6, {"size": (8,) * 6, "stride": (16,) * 5, "box": (8,) * 6}, "rank must be 1 to 5, not 6"),
    ("RANK", "rank", 2, {"interleave": "16B"}, "rank must be 3 to 5 with interleave, not 2"),
    ("RANK", "rank", 2, {"mode": "im2col", "box": ()}, "rank must be 3 to 5 for im2col, not 2"),
    ("ELEMENT", "element", "f15", {"element": "f15"},
     "element must be one of u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64, tf32, f8e4m3, f8e5m2, "
     "not 'f15'"),
    ("INTERLEAVE", "interleave", "64B", {"interleave": "64B"}, "interleave must be one of none, 16B, 32B, not '64B'"),
    ("FILL", "fill", "one", {"fill": "one"}, "fill must be one of zero, nan, constant, not 'one'"),
    ("FILL", "fill", {"value": 1}, {"fill": {"value": 1}},
     'fill must be a name or {"constant": n}, not {\'value\': 1}'),
    ("FILL", "fill", Fill.NAN, {"element": "u16", "fill": "nan"}, "fill nan needs a float element, not u16"),
    ("NONE", "fill_constant", 1 << 32, {"fill": {"constant": 1 << 32}},
     "fill_constant must be 0 to 2^32 - 1, not 4294967296"),
    ("NONE", "mode", "row", {"mode": "row"}, "mode must be one of tile, im2col, not 'row'"),
    ("NONE", "l2_promotion", "32B", {"l2_promotion": "32B"},
     "l2_promotion must be one of none, 64B, 128B, 256B, not '32B'"),
    ("ADDRESS", "address", 8, {"address": 8}, "address must be a multiple of 16, not 0x8"),
    ("ADDRESS", "address", 1, {"address": 1, "unaligned": True}, "address must be a multiple of 2, not 0x1"),
    ("ADDRESS", "address", -16, {"address": -16}, "address must be 0 to 2^64 - 1, not -16"),
    ("SIZE", "size", 0, {"size": (64, 0)}, "size of dimension 1 must be 1 to 2^32, not 0"),
    ("SIZE", "size", (1 << 32) + 1, {"size": ((1 << 32) + 1, 9)},
     "size of dimension 0 must be 1 to 2^32, not 4294967297"),
    ("STRIDE", "stride", 24, {"stride": (24,)}, "stride of dimension 1 must be a multiple of 16, not 24"),
    ("STRIDE", "stride", 3, {"stride": (3,), "unaligned": True},
     "stride of dimension 1 must be a multiple of 2, not 3"),
    ("STRIDE", "stride", -16, {"stride": (-16,)}, "stride of dimension 1 must be 0 to 2^40 - 1, not -16"),
    ("STRIDE", "stride", 1 << 40, {"stride": (1 << 40,)},
     "stride of dimension 1 must be 0 to 2^40 - 1, not 1099511627776"),
    ("BOX", "box", 257, {"box": (8, 257)}, "box of dimension 1 must be 1 to 256, not 257"),
    ("BOX", "box", 0, {"box": (0, 3)}, "box of dimension 0 must be 1 to 256, not 0"),
    ("BOX", "box", 9, {"box": (9, 3)},
     "box of dimension 0 must make rows of a multiple of 16 bytes: 9 elements are 18"),
    ("TRAVERSAL", "traversal", 9, {"traversal": (1, 9)}, "traversal of dimension 1 must be 1 to 8, not 9"),
    ("TRAVERSAL", "traversal", 0, {"traversal": (0, 1)}, "traversal of dimension 0 must be 1 to 8, not 0"),
    ("SWIZZLE", "swizzle", "16B", {"swizzle": "16B"}, "swizzle must be one of none, 32B, 64B, 128B, not '16B'"),
    ("SWIZZLE", "swizzle", Swizzle.B32, {"box": (32, 3), "swizzle": "32B"},
     "swizzle 32B takes rows of at most 32 bytes, not 64"),
]  # fmt: skip
INTERLEAVED = {"element": "f16", "size": (16, 4, 2), "stride": (512, 2048), "box": (5, 2, 1), "interleave": "32B",
               "swizzle": "32B"}  # fmt: skip
INTERLEAVE_RULES = [
    ("ADDRESS", "address", 16, {"address": 16}, "address must be a multiple of 32, not 0x10"),
    ("STRIDE", "stride", 528, {"stride": (512, 528)}, "stride of dimension 2 must be a multiple of 32, not 528"),
    ("SWIZZLE", "swizzle", Swizzle.NONE, {"swizzle": "none"}, "swizzle must be 32B with 32-byte interleave, not none"),
]
IM2COL_RULES = [
    ("CORNER", "lower", -129, {"lower": (-1, -129)}, "lower corner in H must be -128 to 127 for rank 4, not -129"),
    ("CORNER", "upper", 128, {"upper": (128, 0)}, "upper corner in W must be -128 to 127 for rank 4, not 128"),
    ("CORNER", "upper", -5, {"upper": (-2, -5)},
     "upper corner in H must leave a box that begins at -1: -5 ends it at -1"),
    ("CHANNELS", "channels", 257, {"channels": 257}, "channels must be 1 to 256, not 257"),
    ("CHANNELS", "channels", 3, {"channels": 3},
     "channels must make rows of a multiple of 16 bytes: 3 channels are 12"),
    ("PIXELS", "pixels", 1025, {"pixels": 1025}, "pixels must be 1 to 1024, not 1025"),
    ("PIXELS", "pixels", 0, {"pixels": 0}, "pixels must be 1 to 1024, not 0"),
    ("SWIZZLE", "swizzle", Swizzle.B32, {"channels": 16, "swizzle": "32B"},
     "swizzle 32B takes rows of at most 32 bytes, not 64"),
    ("STRIDE", "stride", 8, {"stride": (16, 8, 256)}, "stride of dimension 2 must be a multiple of 16, not 8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "rule"),
    [(TILE, rule) for rule in RULES]
    + [(INTERLEAVED, rule) for rule in INTERLEAVE_RULES]
    + [(IM2COL, rule) for rule in IM2COL_RULES],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_broken_rule(base, rule):
    code, field, value, changes, sentence = rule
    with pytest.raises(DescriptorError) as caught:
        TensorMap(**base | changes)
    assert str(caught.value) == sentence
    assert (caught.value.code, caught.value.field, caught.value.value) == (Error[code], field, value)
    try:
        word = int.from_bytes(TensorMap(**base | changes, check=False).pack(), "little")
    except ValueError:
        return  # software alone can refuse a value that has no encoding
    assert check_word(word) == (Error[code], DESCRIPTOR.index(field), DESCRIPTOR[field].encode(int(value)))


def test_corners_have_five_bits_in_three_dimensions_and_sixteen_in_one():
    deep = {
        "element": "u32",
        "size": (4, 99, 99, 99, 2),
        "stride": (16,) * 4,
        "mode": "im2col",
        "channels": 4,
        "pixels": 1,
    }
    flat = deep | {"size": (4, 99, 2), "stride": (16,) * 2}
    TensorMap(**deep, lower=(-16, 15, 0), upper=(15, -16, 0))
    TensorMap(**flat, lower=(-(1 << 15),), upper=((1 << 15) - 1,))
    with pytest.raises(DescriptorError, match=r"^lower corner in D must be -16 to 15 for rank 5, not 16$"):
        TensorMap(**deep, lower=(0, 0, 16), upper=(0, 0, 0))
    with pytest.raises(DescriptorError, match=r"^upper corner in W must be -32768 to 32767 for rank 3, not 32768$"):
        TensorMap(**flat, lower=(0,), upper=(1 << 15,))


def test_rows_of_an_interleaved_tensor_may_be_longer_than_the_span():
    assert TensorMap(**INTERLEAVED | {"box": (64, 2, 1)}).box[0] == 64


def test_several_broken_rules_report_the_lowest_code():
    with pytest.raises(DescriptorError, match=r"^address must be a multiple of 16, not 0x4$"):
        TensorMap(**TILE | {"address": 4, "stride": (1,), "box": (300, 0), "swizzle": "32B"})


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        (ValueError, {"stride": ()}, "stride must have 1 entries for rank 2 in tile mode, not 0"),
        (ValueError, {"box": (8,)}, "box must have 2 entries for rank 2 in tile mode, not 1"),
        (ValueError, {"traversal": (1, 1, 1)}, "traversal must have 2 entries for rank 2 in tile mode, not 3"),
        (ValueError, {"lower": (-1,)}, "lower must have 0 entries for rank 2 in tile mode, not 1"),
        (ValueError, {"pixels": 5}, "pixels must be left out in tile mode, not 5"),
        (TypeError, {"size": 64}, "size must be a list or tuple, not 64"),
        (TypeError, {"size": (64, 9.0)}, "size must be made of integers, not 9.0"),
        (TypeError, {"address": True}, "address must be made of integers, not True"),
        (TypeError, {"unaligned": 2}, "unaligned must be True or False, not 2"),
    ],
)
def test_arguments_that_cannot_be_a_map(kind, changes, sentence):
    with pytest.raises(kind) as caught:
        TensorMap(**TILE | changes)
    assert str(caught.value) == sentence
    assert not isinstance(caught.value, DescriptorError)


def test_unchecked_map_breaks_rules_and_packs():
    tmap = TensorMap(**TILE | {"stride": (24,)}, check=False)
    assert tmap.pack()[64] == 24
    with pytest.raises(DescriptorError, match=r"^stride of dimension 1 must be a multiple of 16, not 24$"):
        dataclasses.replace(tmap, check=True)
    with pytest.raises(ValueError, match=r"^box must be 1 to 256, not 257$"):
        TensorMap(**TILE | {"box": (8, 257)}, check=False).pack()


@pytest.mark.parametrize(
    ("offset", "bit", "sentence"),
    [
        (0, 1, "version must be 1, not 3"),
        (3, 7, "reserved bit 31 must be 0, not 1"),
        (28, 0, "size of dimension 3 must be stored as 0 for rank 2, not 1"),
        (64, 3, "stride of dimension 1 must be a multiple of 16, not 136"),
    ],
)
def test_unpack_refuses(offset, bit, sentence):
    data = bytearray(TensorMap(**TILE).pack())
    data[offset] ^= 1 << bit
    with pytest.raises(DescriptorError) as caught:
        TensorMap.unpack(data)
    assert str(caught.value) == sentence


def test_unpack_refuses_another_length():
    with pytest.raises(ValueError, match=r"^a descriptor must be 128 bytes, not 64$"):
        TensorMap.unpack(bytes(64))


@pytest.mark.parametrize(
    ("dtype", "element"),
    [("u1", "U8"), ("i1", "S8"), ("u2", "U16"), ("i2", "S16"), ("u4", "U32"), ("i4", "S32"), ("u8", "U64"),
     ("i8", "S64"), ("f2", "F16"), ("f4", "F32"), ("f8", "F64"), (ml_dtypes.bfloat16, "BF16"),
     (ml_dtypes.float8_e4m3fn, "F8E4M3"), (ml_dtypes.float8_e5m2, "F8E5M2")],
)  # fmt: skip
def test_element_of_an_array(dtype, element):
    tmap = TensorMap.tiled(np.zeros((5, 32), dtype), box=(16, 5))
    assert tmap.element == Element[element]
    assert tmap.size == (32, 5)
    assert tmap.stride == (32 * np.dtype(dtype).itemsize,)


def test_element_may_be_another_type_of_the_same_size():
    assert TensorMap.tiled(np.zeros(32, np.float32), box=(16,), element="tf32").element == Element.TF32
    with pytest.raises(DescriptorError, match=r"^element f16 takes 2 bytes, but one of the array 4$"):
        TensorMap.tiled(np.zeros(32, np.float32), box=(16,), element="f16")


def test_strides_of_a_view():
    array = np.zeros((4, 6, 8, 16), np.uint8)
    assert TensorMap.tiled(array[:, ::2, 1:3], box=(16, 1, 1, 1)).stride == (16, 256, 768)
    assert TensorMap.tiled(np.broadcast_to(array[0, 0], (7, 8, 16)), box=(16, 1, 1)).stride == (16, 0)
    with pytest.raises(DescriptorError, match=r"^stride of dimension 0 must be the element's 1 bytes, not 2$"):
        TensorMap.tiled(array[..., ::2], box=(8, 1, 1, 1))
    with pytest.raises(DescriptorError, match=r"^stride of dimension 1 must be 0 to 2\^40 - 1, not -16$"):
        TensorMap.tiled(array[:, :, ::-1], box=(16, 1, 1, 1))
    with pytest.raises(DescriptorError, match=r"^stride of dimension 1 must be a multiple of 16, not 3$"):
        TensorMap.tiled(np.zeros((20, 3), np.uint8), box=(16, 1))


def test_only_arrays_of_known_types_make_maps():
    with pytest.raises(TypeError, match=r"^array must be a numpy array, not list$"):
        TensorMap.tiled([1, 2], box=(16,))
    with pytest.raises(TypeError, match=r"^array must have a type that an element stands for, not complex64$"):
        TensorMap.tiled(np.zeros(16, np.complex64), box=(16,))
    with pytest.raises(TypeError, match=r"^array must have a type that an element stands for, not >u4$"):
        TensorMap.tiled(np.zeros(16, ">u4"), box=(16,))


def test_an_im2col_map_of_an_array_and_of_a_shape():
    activations = np.zeros((2, 8, 9, 16), np.float16)
    options = {"pixels": 128, "lower": (-1, -1), "upper": (-1, 0)}
    written = TensorMap(
        element="f16", size=(16, 9, 8, 2), stride=(32, 288, 2304), mode="im2col", channels=16, **options
    )
    assert TensorMap.im2col(activations, **options) == written
    assert TensorMap.im2col(activations.shape, element="f16", **options) == written
    part = TensorMap.im2col(activations, channels=8, traversal=(1, 2, 2, 1), swizzle="32B", **options)
    assert (part.channels, part.traversal, part.swizzle.span) == (8, (1, 2, 2, 1), 32)
    assert part.array is activations


def test_wrong_arguments_of_im2col():
    with pytest.raises(ValueError, match=r"^element must be given for the shape \(2, 8, 8, 16\), which has no type$"):
        TensorMap.im2col((2, 8, 8, 16), pixels=1, lower=(0, 0), upper=(0, 0))
    with pytest.raises(TypeError, match=r"^array must be a numpy array, not list$"):
        TensorMap.im2col([1], pixels=1, lower=(0, 0), upper=(0, 0))
    with pytest.raises(ValueError, match=r"^lower must have 2 entries for rank 4 in im2col mode, not 1$"):
        TensorMap.im2col((2, 8, 8, 16), element="u8", pixels=1, lower=(0,), upper=(0, 0))


def test_empty_arrays_are_refused():
    with pytest.raises(ValueError, match=r"^array must not be empty, with shape \(0, 4\)$"):
        TensorMap.tiled(np.zeros((0, 4), np.uint8), box=(4, 1))


@pytest.mark.parametrize(
    "tmap",
    [
        TensorMap(**TILE | {"swizzle": "128b", "fill": {"constant": 7}, "traversal": (1, 2), "unaligned": True}),
        TensorMap(**INTERLEAVED),
        TensorMap.im2col((2, 8, 8, 16), element="u8", pixels=9, lower=(0, 0), upper=(0, 0), address=4096),
    ],
)
def test_repr_of_a_map(tmap):
    assert eval(repr(tmap), {"TensorMap": TensorMap}) == tmap
    assert repr(tmap).startswith(f"TensorMap(element='{tmap.element.name.lower()}', size=")
