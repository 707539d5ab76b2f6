"""Which known name a user may have meant by an unknown one: the end of the sentence that refuses it."""

import re
from difflib import get_close_matches

__all__ = ["suggestion"]

#: Prefixes of names in CUDA, PTX, numpy and PyTorch, in lower case.
_PREFIX = re.compile(
    r"((cu_tensor_map|data_type|swizzle|interleave|float_oob_fill|oob_fill|l2_promotion|l2)_|(np|numpy|torch)?\.)*"
)
#: Names of other projects, in lower case and without prefix, and our names for them: several where the kind of name
#: decides.
_SYNONYMS = {
    # types
    "uint8": ("u8",), "uint8_t": ("u8",), "byte": ("u8",), "uchar": ("u8",), "b8": ("u8",), "ubyte": ("u8",),
    "int8": ("s8",), "int8_t": ("s8",), "i8": ("s8",), "char": ("s8",), "sbyte": ("s8",),
    "uint16": ("u16",), "uint16_t": ("u16",), "ushort": ("u16",), "b16": ("u16",),
    "int16": ("s16",), "int16_t": ("s16",), "i16": ("s16",), "short": ("s16",),
    "uint32": ("u32",), "uint32_t": ("u32",), "uint": ("u32",), "b32": ("u32",), "unsigned": ("u32",),
    "int32": ("s32",), "int32_t": ("s32",), "i32": ("s32",), "int": ("s32",),
    "uint64": ("u64",), "uint64_t": ("u64",), "ulong": ("u64",), "b64": ("u64",),
    "int64": ("s64",), "int64_t": ("s64",), "i64": ("s64",), "long": ("s64",),
    "fp16": ("f16",), "float16": ("f16",), "half": ("f16",), "__half": ("f16",), "float16_t": ("f16",),
    "bfloat16": ("bf16",), "bfloat": ("bf16",), "__nv_bfloat16": ("bf16",), "brain": ("bf16",),
    "fp32": ("f32",), "float32": ("f32",), "float": ("f32",), "single": ("f32",), "float32_ftz": ("f32",),
    "fp64": ("f64",), "float64": ("f64",), "double": ("f64",),
    "tfloat32": ("tf32",), "tfloat32_ftz": ("tf32",), "tensorfloat32": ("tf32",),
    "e4m3": ("f8e4m3",), "fp8e4m3": ("f8e4m3",), "float8_e4m3fn": ("f8e4m3",), "__nv_fp8_e4m3": ("f8e4m3",),
    "float8_e4m3": ("f8e4m3",), "fp8_e4m3": ("f8e4m3",),
    "e5m2": ("f8e5m2",), "fp8e5m2": ("f8e5m2",), "float8_e5m2": ("f8e5m2",), "__nv_fp8_e5m2": ("f8e5m2",),
    "fp8_e5m2": ("f8e5m2",),
    # spans, fills, modes
    "off": ("none",), "disabled": ("none",), "no": ("none",), "linear": ("none",), "null": ("none",),
    "none": ("zero",), "zeros": ("zero",), "0": ("zero", "none"), "nan_request_zero_fma": ("nan",),
    "tiled": ("tile", "tiles"), "tiles": ("tile",), "tile": ("tiles",), "im2row": ("im2col",),
    # reductions, memories, commands
    "sum": ("add",), "plus": ("add",), "minimum": ("min",), "maximum": ("max",),
    "smem": ("shared",), "shared_memory": ("shared",), "shared::cta": ("shared",), "shared::cluster": ("shared",),
    "gmem": ("global",), "global_memory": ("global",), "dram": ("global",),
    "expecttx": ("expect_tx",), "arrive_expect_tx": ("expect_tx",), "test_wait": ("try_wait", "wait"),
    "try_wait": ("wait",), "wait_group": ("wait",), "commit_group": ("commit",), "bulk": ("copy_block",),
    "tensor": ("copy_tensor",), "convolve": ("convolution",), "conv2d": ("convolution",),
    "memcpy": ("copy_block",), "copy": ("copy_block", "copy_tensor"),
    "less": ("lt",), "<": ("lt",), "greater": ("gt",), ">": ("gt",), "equal": ("eq",), "==": ("eq",), "!=": ("ne",),
    "<=": ("le",), ">=": ("ge",),
    # fields of a descriptor and of a command
    "boxdim": ("box",), "elementstrides": ("traversal",), "globaldim": ("size",), "globalstrides": ("stride",),
    "globaladdress": ("address",), "oobfill": ("fill",), "l2promotion": ("l2_promotion",), "datatype": ("element",),
    "tensordatatype": ("element",), "dtype": ("element",), "type": ("element",), "strides": ("stride",),
    "shape": ("size",), "dims": ("size",), "pixelboxlowercorner": ("lower",), "pixelboxuppercorner": ("upper",),
    "channelsperpixel": ("channels",), "pixelspercolumn": ("pixels",), "coordinates": ("coords",),
    "tensorcoords": ("coords",), "im2coloffsets": ("offsets",), "im2coloff": ("offsets",), "mbar": ("barrier",),
    "mbarrier": ("barrier",), "dstmem": ("smem",), "srcmem": ("smem",), "tensormap": ("descriptor",),
    "redop": ("reduction",), "ctamask": ("cores",),
}  # fmt: skip


def suggestion(value, known):
    """``"; did you mean 'f16'?"`` for a ``value`` that is not among the names ``known``, or "" if none is similar.

    A value that is not text may be a type of another library, such as ``numpy.float16``, or a number without its unit.
    """
    if not isinstance(value, str):
        value = getattr(value, "__name__", None) or getattr(value, "name", None) or value
    text = str(value).strip().lower()
    name = _similar(text, text[_PREFIX.match(text).end() :], {str(name).lower(): str(name) for name in known})
    return f"; did you mean {name!r}?" if name else ""


def _similar(text, bare, names):
    """The name that is meant by ``text``, which is ``bare`` without its prefix, or None."""
    for word in dict.fromkeys((text, bare, bare.replace("-", "_"), bare.replace("_", ""))):
        for candidate in (word, *_SYNONYMS.get(word, ()), f"{word}b"):  # 128: 128B
            if candidate in names:
                return names[candidate]
    if text in _SYNONYMS or bare in _SYNONYMS:
        return None  # well spelt, but without an equivalent here
    # Short names differ from each other by one letter or digit: suggesting one type for another would be a trap.
    close = get_close_matches(bare, [name for name in names if len(name) > 3], 1, 0.73)
    return names[close[0]] if close else None
