"""Arguments of the golden model and of sessions, and the sentences that refuse wrong ones."""

import numpy as np
import pytest

from support.wrong_kinds import wrong_answers
from tilewright import golden
from tilewright.golden import (
    Conv,
    ConvLayer,
    ConvParams,
    ConvShape,
    Core,
    GlobalMemory,
    Machine,
    Memory,
    Pe,
    Placement,
    PostProcessing,
    TensorMap,
)
from tilewright.golden.arguments import array, integer, integers, member, shown
from tilewright.spec import Reduction, Swizzle


def test_kinds_of_integers():
    assert integer("n", np.uint8(3), 0, 3) == 3
    assert integers("n", np.array([1, -2], np.int16)) == (1, -2)
    assert integers("n", [np.int64(4), 5]) == (4, 5)


@pytest.mark.parametrize("value", ["128B", "128b", Swizzle.B128, 3, np.int64(3)])
def test_members_by_name_in_any_case_by_number_and_as_they_are(value):
    assert member("swizzle", Swizzle, value) is Swizzle.B128


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (TypeError, lambda: integer("n", 1.0), "n must be an integer, not 1.0"),
        (TypeError, lambda: integer("n", True), "n must be an integer, not True"),
        (ValueError, lambda: integer("n", -1, 0), "n must be 0 or more, not -1"),
        (ValueError, lambda: integer("n", 5, 1, 4), "n must be 1 to 4, not 5"),
        (TypeError, lambda: integers("n", 3), "n must be a list or tuple, not 3"),
        (
            TypeError,
            lambda: integers("n", np.array(3)),
            "n must be a list or tuple, not an array of shape () and int64",
        ),
        (TypeError, lambda: integers("n", (1, "x")), "n must be made of integers, not 'x'"),
        (ValueError, lambda: member("op", Swizzle, "16B"), "op must be one of none, 32B, 64B, 128B, not '16B'"),
        (ValueError, lambda: member("op", Swizzle, 4), "op must be one of none, 32B, 64B, 128B, not 4"),
        (
            TypeError,
            lambda: member("op", Reduction, None),
            "op must be one of none, add, min, max, inc, dec, and, or, xor, not None; did you mean 'none'?",
        ),
        (TypeError, lambda: array("a", [1]), "a must be a numpy array, not [1]"),
        (ValueError, lambda: array("a", np.zeros((0, 4))), "a must not be empty, with shape (0, 4)"),
    ],
)
def test_refused_arguments(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_long_values_are_cut():
    assert shown("x" * 100) == "'" + "x" * 58 + "…"
    assert shown(np.zeros((2, 3), np.uint8)) == "an array of shape (2, 3) and uint8"


A, B = np.ones((4, 8), np.int8), np.ones((8, 4), np.int8)
X, K = np.ones((1, 4, 4, 16), np.uint8), np.ones((16, 3, 3, 16), np.int8)
_IMAGE = (np.arange(20 * 24 * 16) % 251).astype(np.uint8).reshape(20, 24, 16)


def _tmap():
    return TensorMap.tiled(_IMAGE.copy(), box=(16, 4, 4))


def _smem():
    return np.zeros(4096, np.uint8)


def _layer():
    return ConvLayer(X, K, "u8s8")


def _machine():
    return Machine(GlobalMemory(4096), _smem())


def _core():
    return Core(GlobalMemory(4096), np.zeros(16384, np.uint8))


#: Calls, and functions that make right arguments for them.
CALLS = {
    "TensorMap": (TensorMap, lambda: {"element": "u8", "size": (16, 50, 40), "stride": (16, 800), "box": (16, 8, 8),
        "address": 0, "traversal": (1, 1, 1), "swizzle": "none", "interleave": "none", "fill": "zero",
        "fill_constant": 0, "l2_promotion": "none", "mode": "tile", "unaligned": False, "gather0": False, "lower":
        (), "upper": (), "channels": 1, "pixels": 1, "array": None}),
    "tiled": (TensorMap.tiled, lambda: {"array": _IMAGE, "box": (16, 4, 4), "element": "u8", "swizzle": "none"}),
    "im2col": (TensorMap.im2col, lambda: {"array": _IMAGE[None], "pixels": 16, "channels": 16, "lower": (-1, -1),
        "upper": (-1, -1), "element": "u8"}),
    "unpack": (TensorMap.unpack, lambda: {"data": _tmap().pack()}),
    "load": (golden.load, lambda: {"tmap": _tmap(), "coords": (0, 0, 0), "gmem": None, "smem": None, "address": 0,
        "offsets": (0, 0, 0)}),
    "store": (golden.store, lambda: {"tmap": _tmap(), "coords": (0, 0, 0), "smem": _smem(), "gmem": None, "address":
        0, "reduction": "none", "fill": False}),
    "prefetch": (golden.prefetch, lambda: {"tmap": _tmap(), "coords": (0, 0, 0), "offsets": (0, 0, 0)}),
    "copy_block": (golden.copy_block, lambda: {"source": 0, "destination": 0, "size": 16, "gmem": GlobalMemory(64),
        "smem": _smem(), "source_space": "global", "destination_space": "shared", "reduction": "none", "element":
        "u8"}),
    "prefetch_block": (golden.prefetch_block, lambda: {"source": 0, "size": 16}),
    "multiply": (golden.multiply, lambda: {"a": A, "b": B, "type": "s8s8", "c": None}),
    "gemm_program": (golden.gemm_program, lambda: {"a": A, "b": B, "type": "s8s8", "c": None, "sizes": None,
        "size_bytes": 128 * 1024, "swizzle": "128B", "paged": None, "page_log2": (None,) * 3, "repeated": False,
        "ka": 1, "kb": 1, "transpose": 0, "order": "k", "depth": 8}),
    "dot": (golden.dot, lambda: {"acc": np.zeros(2, np.uint32), "a": np.ones((2, 3), np.uint8), "b": np.ones((2, 3),
        np.uint8), "type": "u8u8"}),
    "convolve": (golden.convolve, lambda: {"x": X, "k": K, "type": "u8s8", "kernel": None, "stride": (1, 1),
        "dilation": (1, 1), "padding": (0, 0, 0, 0), "operation": "convolution", "zeros": (0, 0), "post": None,
        "params": None, "plan": "cost", "gap": 0}),
    "ConvLayer": (golden.ConvLayer, lambda: {"x": X, "k": K, "type": "u8s8", "kernel": None, "stride": (1, 1),
        "dilation": (1, 1), "padding": (0, 0, 0, 0), "operation": "convolution", "zeros": (0, 0), "post": None,
        "params": None, "plan": "cost", "gap": 0}),
    "ConvLayer.result": (lambda smem: _layer().result(smem), lambda: {"smem": _layer().smem}),
    "PostProcessing": (lambda **o: golden.convolve(X, K, "u8s8", post=PostProcessing(**o)), lambda: {"output": "s8",
        "bias": (0,) * 16, "scale": (0.5,) * 16, "zero": 0, "minimum": -128, "maximum": 127, "addend": None,
        "ratio": (1.0, 1.0), "offset": 0.0, "add_minimum": None, "add_maximum": None}),
    "ConvParams": (ConvParams, lambda: {"row_bytes": 32, "slaves": 8, "units": 4, "feature_rows": 128,
        "weight_rows": 9, "weight_bytes": 32768, "results": 32, "queue_depth": 4, "rotation": True, "types": ("i8",
        "i16")}),
    "ConvShape.of": (ConvShape.of, lambda: {"size": (1, 8, 8, 16), "out_channels": 16, "kernel": (3, 3), "stride":
        (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}),
    "plan_convolution": (golden.plan_convolution, lambda: {"shape": _layer().shape, "params": ConvParams(), "rule":
        "cost"}),
    "convolution_plans": (lambda **o: list(golden.convolution_plans(**o)), lambda: {"shape": _layer().shape,
        "params": ConvParams()}),
    "most_steps": (golden.most_steps, lambda: {"params": ConvParams(), "fold": 1, "dilation": 1}),
    "read_share": (golden.read_share, lambda: {"plan": _layer().plan, "pixel": 16}),
    "request_cycles": (golden.request_cycles, lambda: {"plan": _layer().plan, "pixel": 16}),
    "seed_granularity": (golden.seed_granularity, lambda: {"size": 16, "row_bytes": 64}),
    "Conv": (golden.Conv, lambda: {"smem": _smem(), "params": None}),
    "Conv.execute": (lambda word: Conv(_layer().smem).execute(word), lambda: {"word": _layer().word}),
    "job_word": (golden.job_word, lambda: {"batch": 1, "height": 4, "kernel": (1, 1), "operation": "convolution"}),
    "conv_words": (golden.conv_words, lambda: {"job": _layer().word}),
    "Machine": (golden.Machine, lambda: {"gmem": GlobalMemory(64), "smem": _smem(), "bus_bytes": 64, "addr_width":
        64, "windows": None, "features": ("im2col",), "processors": ()}),
    "Machine.execute": (lambda word: _machine().execute(word), lambda: {"word": golden.command_word("commit")}),
    "Machine.execute_on": (lambda **o: _machine().execute_on(**o), lambda: {"descriptor":
        int.from_bytes(_tmap().pack(), "little"), "opcode": "load", "coords": (0, 0, 0, 0, 0), "smem": 0}),
    "Machine.barrier": (lambda **o: _machine().barrier(**o), lambda: {"op": "init", "address": 0, "value": 1}),
    "command_word": (golden.command_word, lambda: {"opcode": "load", "descriptor": 0, "coords": (0,) * 5, "smem": 0,
        "signal": 1, "barrier": 8}),
    "check_word": (golden.check_word, lambda: {"word": int.from_bytes(_tmap().pack(), "little")}),
    "limits": (golden.limits, lambda: {"tmap": _tmap(), "coords": (0, 0, 0), "bus_bytes": 64, "address": 0,
        "addr_width": 64, "offsets": (0, 0, 0)}),
    "tx_bytes": (golden.tx_bytes, lambda: {"tmap": _tmap()}),
    "align": (golden.align, lambda: {"shape": (4, 8, 8, 16), "element": "u8", "operator": "pool", "granularity": 16,
        "padding": "zero", "source": 0, "target": 4096, "box_bytes": 16384}),
    "Memory": (golden.Memory, lambda: {"data": 64, "name": "m", "base": 0}),
    "GlobalMemory": (golden.GlobalMemory, lambda: {"data": 64}),
    "Memory.read": (lambda **o: Memory(64).read(**o), lambda: {"address": 0, "count": 4}),
    "Memory.write": (lambda **o: Memory(64).write(**o), lambda: {"address": 0, "data": b"1234"}),
    "Memory.holds": (lambda **o: Memory(64).holds(**o), lambda: {"addresses": [0], "count": 4}),
    "Memory.at": (lambda **o: Memory(64).at(**o), lambda: {"addresses": [0]}),
    "Memory.put": (lambda **o: Memory(64).put(**o), lambda: {"addresses": [0], "data": np.array([1], np.uint8)}),
    "GlobalMemory.place": (lambda **o: GlobalMemory(1 << 16).place(**o), lambda: {"array": _IMAGE, "align": 128}),
    "Pe": (golden.Pe, lambda: {"smem": _smem(), "sizes": None, "core": 0}),
    "Pe.run": (lambda words: Pe(_smem()).run(words), lambda: {"words": [0]}),
    "Pe.execute": (lambda word: Pe(_smem()).execute(word), lambda: {"word": 0}),
    "Pe.write_segment": (lambda **o: Pe(_smem()).write_segment(**o), lambda: {"index": 0, "word": 0}),
    "Pe.write_page": (lambda **o: Pe(_smem()).write_page(**o), lambda: {"index": 0, "word": 0}),
    "PeSizes": (golden.PeSizes, lambda: {"threads": 16, "regs": 320, "factor_regs": 2, "uniform_regs": 8,
        "segments": 16, "pages": 256, "types": ("i8",)}),
    "Placement": (golden.Placement, lambda: {"size_bytes": 4096, "sizes": None}),
    "Placement.add": (lambda **o: Placement(4096).add(**o), lambda: {"size": (8, 4), "element": "u8", "page_log2":
        None, "swizzle": "none", "paged": None, "repeated": False}),
    "Segment": (golden.Segment, lambda: {"element": "u8", "size": (8, 4), "page_log2": (3, 2), "swizzle": "none",
        "paged": False, "first_entry": 0, "base": 0}),
    "Segment.unpack": (golden.Segment.unpack, lambda: {"word": 0}),
    "wrong_segment": (golden.wrong_segment, lambda: {"word": 0, "pages": 4}),
    "instruction_word": (golden.instruction_word, lambda: {"operation": "halt"}),
    "Gemm": (golden.Gemm, lambda: {"rows": (4,), "columns": (4,), "k": 8, "type": "s8s8", "ka": 1, "kb": 1,
        "transpose": 0, "order": "k", "depth": 8, "accumulate": False}),
    "Core": (golden.Core, lambda: {"gmem": GlobalMemory(64), "smem": _smem(), "pe": None, "conv": None, "bus_bytes":
        64, "addr_width": 64, "windows": None, "program_window": None, "watchdog": False, "tmau": None, "number":
        0}),
    "Core.run": (lambda **o: _core().run(**o), lambda: {"address": 0, "words": 0, "limit": None}),
    "Core.steps": (lambda **o: list(_core().steps(**o)), lambda: {"address": 0, "words": 0}),
    "program_word": (golden.program_word, lambda: {"kind": "end", "interrupt": 1}),
    "program_bytes": (golden.program_bytes, lambda: {"words": [golden.program_word("end")]}),
    "page_words": (golden.page_words, lambda: {"index": 0, "word": 0, "tag": 0}),
    "segment_words": (golden.segment_words, lambda: {"index": 0, "word": 0, "tag": 0}),
    "tmau_word": (golden.tmau_word, lambda: {"command": golden.command_word("commit")}),
    "LayerProgram": (golden.LayerProgram, lambda: {"layer": _layer(), "smem_bytes": 128 * 1024}),
    "ImplicitGemm": (golden.ImplicitGemm, lambda: {"x": X.astype(np.int8), "k": K, "type": "s8s8", "stride": (1, 1),
        "dilation": (1, 1), "padding": (0, 0, 0, 0), "sizes": None, "smem_bytes": 128 * 1024}),
    "ClusterGemm": (golden.ClusterGemm, lambda: {"x": X.astype(np.int8), "k": K, "type": "s8s8", "cores": 2,
        "smem_bytes": 128 * 1024}),
    "Cluster": (golden.Cluster, lambda: {"gmem": GlobalMemory(64), "smems": [_smem(), _smem()]}),
    "delivery_bits": (golden.delivery_bits, lambda: {"cores": [0, 1], "source_core": 0}),
    "Windows": (golden.Windows, lambda: {"global_": (0, 15), "shared": (0, 15)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_wrong_kinds(name):
    assert wrong_answers(*CALLS[name]) == []


def _read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "call",
    [
        lambda: golden.store(TensorMap.tiled(_read_only(_IMAGE.copy()), box=(16, 4, 4)), (0, 0, 0), _smem()),
        lambda: golden.load(_tmap(), (0, 0, 0), smem=_read_only(_smem())),
        lambda: golden.copy_block(0, 0, 16, GlobalMemory(64), _read_only(_smem())),
        lambda: Memory(_read_only(_smem())).write(0, b"12"),
        lambda: Memory(_read_only(_smem())).put([0], 1),
        lambda: Machine(GlobalMemory(64), _read_only(_smem())),
        lambda: Pe(_read_only(_smem())),
        lambda: Conv(_read_only(_smem())),
    ],
)
def test_read_only_arrays_are_not_written(call):
    with pytest.raises(ValueError, match=r"read-only") as caught:
        call()
    assert "destination" not in str(caught.value), "this is numpy's sentence"


def test_read_only_arrays_are_read():
    """A source may be."""
    image = _read_only(_IMAGE.copy())
    assert (golden.load(TensorMap.tiled(image, box=(16, 4, 4)), (0, 0, 0))[:16] == image[0, 0]).all()
    golden.store(_tmap(), (0, 0, 0), _read_only(_smem()))
    assert GlobalMemory(1 << 16).place(image) == 0
