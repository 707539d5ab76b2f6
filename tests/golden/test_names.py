"""Suggestions for unknown names: words of CUDA, PTX, numpy and PyTorch, and misspelt names."""

import re

import numpy as np
import pytest

from tilewright import golden
from tilewright.spec import Element, Fill, Interleave, L2Promotion, Mode, Swizzle
from tilewright.spec.fields import names, spoken
from tilewright.spec.names import suggestion

#: Words of others for members of each enumeration, by our name.
WORDS = {
    Element: {
        "u8": ["uint8", "uint8_t", "np.uint8", "torch.uint8", "CU_TENSOR_MAP_DATA_TYPE_UINT8", "b8", "byte", np.uint8],
        "s8": ["int8", "i8", "char", np.int8], "u16": ["uint16", "CU_TENSOR_MAP_DATA_TYPE_UINT16", "ushort"],
        "s16": ["int16", "short"], "u32": ["uint32", "CU_TENSOR_MAP_DATA_TYPE_UINT32", ".u32", "b32"],
        "s32": ["int32", "int", "CU_TENSOR_MAP_DATA_TYPE_INT32", np.dtype("int32")],
        "u64": ["uint64", "CU_TENSOR_MAP_DATA_TYPE_UINT64"], "s64": ["int64", "long", "CU_TENSOR_MAP_DATA_TYPE_INT64"],
        "f16": ["fp16", "float16", "half", "__half", "torch.half", "CU_TENSOR_MAP_DATA_TYPE_FLOAT16", "FP16",
                np.float16],
        "bf16": ["bfloat16", "__nv_bfloat16", "torch.bfloat16", "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"],
        "f32": ["fp32", "float32", "float", "CU_TENSOR_MAP_DATA_TYPE_FLOAT32", "CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ",
                np.float32],
        "f64": ["fp64", "double", "float64", "CU_TENSOR_MAP_DATA_TYPE_FLOAT64"],
        "tf32": ["tfloat32", "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32", "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ"],
        "f8e4m3": ["e4m3", "fp8_e4m3", "torch.float8_e4m3fn"], "f8e5m2": ["e5m2", "torch.float8_e5m2", "f8e5m"],
    },
    Swizzle: {
        "none": ["SWIZZLE_NONE", "CU_TENSOR_MAP_SWIZZLE_NONE", "off"],
        "32B": ["SWIZZLE_32B", "CU_TENSOR_MAP_SWIZZLE_32B", "32", 32],
        "64B": ["SWIZZLE_64B", "64", 64], "128B": ["SWIZZLE_128B", "swizzle_128b", "CU_TENSOR_MAP_SWIZZLE_128B", 128],
    },
    Interleave: {"none": ["CU_TENSOR_MAP_INTERLEAVE_NONE"],
                 "16B": ["CU_TENSOR_MAP_INTERLEAVE_16B", "INTERLEAVE_16B", 16]},
    Fill: {"zero": ["zeros", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"],
           "nan": ["CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA", "NAN_REQUEST_ZERO_FMA"],
           "constant": ["constnt"]},
    L2Promotion: {"256B": ["CU_TENSOR_MAP_L2_PROMOTION_L2_256B", "L2_256B", 256],
                  "none": ["CU_TENSOR_MAP_L2_PROMOTION_NONE"]},
    Mode: {"tile": ["tiled", "tiles"], "im2col": ["im2col_", "imcol", "im2row"]},
}  # fmt: skip
FIELDS = {Element: "element", Swizzle: "swizzle", Interleave: "interleave", Fill: "fill", L2Promotion: "l2_promotion",
          Mode: "mode"}  # fmt: skip
CASES = [(enum, ours, word) for enum, table in WORDS.items() for ours, words in table.items() for word in words]


@pytest.mark.parametrize(("enum", "ours", "word"), CASES)
def test_words_of_other_libraries_get_suggestions(enum, ours, word):
    options = {"element": "u8", "size": (64, 64), "stride": (64,), "box": (16, 4)} | {FIELDS[enum]: word}
    with pytest.raises(golden.DescriptorError, match=rf"; did you mean '{re.escape(ours)}'\?$"):
        golden.TensorMap(**options)


@pytest.mark.parametrize("enum", FIELDS)
def test_our_names_are_suggestions_for_themselves(enum):
    """And no name of ours is a word for another one."""
    for member in enum:
        assert suggestion(spoken(member), names(enum)) == f"; did you mean {spoken(member)!r}?"


@pytest.mark.parametrize(
    "word", ["", "xyz", "u9", "f61", "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B", "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B", 3.5]
)
def test_no_suggestion(word):
    """A missing type must not suggest another one with a similar name."""
    assert suggestion(word, names(Element)) == suggestion(word, names(Swizzle)) == ""


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        (lambda: golden.command_word("lod"), "load"),
        (lambda: golden.command_word("reduce", reduction="sum"), "add"),
        (lambda: golden.command_word("load", mbar=8), "barrier"),
        (lambda: golden.command_word("load", coordinates=(0,)), "coords"),
        (lambda: golden.multiply(np.zeros((4, 4), np.uint8), np.zeros((4, 4), np.uint8), "u8_u8"), "u8u8"),
        (
            lambda: golden.gemm_program(np.zeros((4, 4), np.int8), np.zeros((4, 4), np.int8), "s8s8", transposed=1),
            "transpose",
        ),
        (lambda: golden.plan_convolution(None, None, "fetsh"), "fetch"),
    ],
)
def test_other_names_of_the_golden_model(call, ours):
    with pytest.raises((ValueError, TypeError), match=rf"; did you mean '{ours}'\?$"):
        call()
