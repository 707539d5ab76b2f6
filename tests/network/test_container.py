"""Model containers: loaded by the C library, run by the golden model, refused where they do not fit."""

import ctypes
import random
import subprocess

import numpy as np
import pytest

from support.c_library import compile_library, open_core
from support.network import draw_inputs
from tilewright.golden import Core, Memory
from tilewright.network import compile as compile_network
from tilewright.network import evaluate
from tilewright.network.container import c_array, container
from tilewright.network.drawn import NetworkMaker
from tilewright.network.graph import ModelError
from tilewright.network.models.small import build_small, small_input
from tilewright.network.reader import read_model
from tilewright.tools.cli.main import main
from tilewright.verify.random.model import Form
from tilewright.verify.random.networks import draw_network

SEED = 12
FORMAT, VERSION, SHORT, CHECKSUM, HARDWARE, MEMORY, TENSOR, BYTES = range(9, 17)  # codes of the library
ADDRESS = 0x1_8000_0000


class Model(ctypes.Structure):
    """``tw_model``."""

    _fields_ = [("core", ctypes.c_void_p), ("container", ctypes.c_void_p), ("memory", ctypes.c_void_p),
                ("address", ctypes.c_uint64)]  # fmt: skip


class Tensor(ctypes.Structure):
    """``tw_model_tensor``."""

    _fields_ = [("bytes", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("size", ctypes.c_uint32 * 6),
                ("element", ctypes.c_uint32), ("scale", ctypes.c_float), ("zero", ctypes.c_int32)]  # fmt: skip


def code_of(status):
    assert not status or status >> 16 == 15, hex(status)
    return status & 0xFF


class Loader:
    """The library with a core of a preset, whose registers are arrays."""

    def __init__(self, library, preset):
        self.library = library
        self.core, self.arrays = open_core(library, preset)
        self.model = Model()

    def load(self, data, room=None, address=ADDRESS):
        """The code of the refusal, and memory after loading, which held 0xEE."""
        room = (int.from_bytes(data[16:20], "little") if len(data) >= 20 else 0) if room is None else room
        # Freed only with the loader: the model refers to them.
        self.kept = np.full(room + 8192, 0xEE, np.uint8)
        first = -self.kept.ctypes.data % 4096
        self.memory = self.kept[first : first + room]
        self.data = np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0") or b"\0" * 4, "<u4").copy()
        found = self.library.tw_model_load(
            ctypes.byref(self.model), ctypes.byref(self.core), ctypes.c_void_p(self.data.ctypes.data),
            ctypes.c_size_t(len(data)), ctypes.c_void_p(self.memory.ctypes.data), ctypes.c_size_t(room),
            ctypes.c_uint64(address),
        )  # fmt: skip
        return code_of(found)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_library(tmp_path_factory.mktemp("library"))


def small_graph():
    """An input of odd sizes, a kernel of the processing engine, two outputs."""
    maker = NetworkMaker(SEED)
    x = maker.input((1, 5, 9, 7))
    y = maker.conv(x, 12, 3)
    z = maker.pool(y, "max", (2, 2), stride=2)
    return maker.graph(z, maker.conv(y, 3, 1))


@pytest.fixture(scope="module")
def compiled():
    return compile_network(small_graph(), "unit")


def run_golden(compiled, memory, address):
    """Runs the program in ``memory``, which begins at ``address``."""
    machine = compiled.plan.machine
    core = Core(Memory(memory, base=address), np.zeros(machine.smem_bytes, np.uint8), pe=machine.pe, conv=machine.conv,
                bus_bytes=machine.bus_bytes)  # fmt: skip
    assert core.run(address + compiled.plan.start, len(compiled.words)) is None


def answers(loader, compiled, inputs):
    """Outputs of the loaded model, run on golden; ``inputs`` are the quantised arrays in order."""
    model = ctypes.byref(loader.model)
    for number, array in enumerate(inputs):
        raw = np.ascontiguousarray(array).tobytes()
        assert loader.library.tw_model_input(model, number, raw, ctypes.c_size_t(len(raw))) == 0
        assert code_of(loader.library.tw_model_input(model, number, raw, ctypes.c_size_t(len(raw) - 1))) == BYTES
    run_golden(compiled, loader.memory, ADDRESS)
    found = []
    for number in range(len(compiled.graph.outputs)):
        tensor = Tensor()
        assert loader.library.tw_model_describe(model, 1, number, ctypes.byref(tensor)) == 0
        raw = ctypes.create_string_buffer(tensor.bytes)
        assert loader.library.tw_model_output(model, number, raw, ctypes.c_size_t(tensor.bytes)) == 0
        dtype = {0: np.uint8, 1: np.int8, 5: np.int32}[tensor.element]
        values = np.frombuffer(raw.raw, dtype).reshape(tuple(tensor.size)[: tensor.rank])
        found.append((values, tensor.scale, tensor.zero))
    return found


def test_a_loaded_model_gives_what_the_evaluation_gives(library, compiled):
    """Far from address 0, in memory that was not clear."""
    loader = Loader(library, "unit")
    assert loader.load(container(compiled)) == 0
    inputs = draw_inputs(np.random.default_rng(SEED), compiled.graph)
    expected = evaluate(compiled.graph, inputs)
    for name, (values, _, _) in zip(compiled.graph.outputs, answers(loader, compiled, inputs.values()), strict=True):
        np.testing.assert_array_equal(values, expected[name])
    model, tensor = ctypes.byref(loader.model), Tensor()
    assert code_of(library.tw_model_describe(model, 0, 1, ctypes.byref(tensor))) == TENSOR
    assert code_of(library.tw_model_describe(model, 1, 2, ctypes.byref(tensor))) == TENSOR
    assert code_of(library.tw_model_output(model, 2, b"", ctypes.c_size_t(0))) == TENSOR


def test_scales_are_those_of_the_model(library):
    """Floats at both ends, which the processor quantises and dequantises."""
    graph = read_model(build_small("signed"))
    compiled, loader = compile_network(graph, "unit"), Loader(library, "unit")
    assert loader.load(container(compiled)) == 0
    inputs, tensor = small_input("signed", SEED), Tensor()
    library.tw_model_describe(ctypes.byref(loader.model), 0, 0, ctypes.byref(tensor))
    stored = np.clip(np.rint(inputs["x"] / np.float32(tensor.scale)) + tensor.zero, -128, 127).astype(np.int8)
    ((values, scale, zero),) = answers(loader, compiled, [stored])
    found = (values.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)
    np.testing.assert_array_equal(found, evaluate(graph, inputs)[graph.outputs[0]])


def test_bad_containers_are_refused(library, compiled):
    """Cut short, of another version, damaged in any byte, for another core, too large; memory is as it was."""
    data, rng = container(compiled), random.Random(SEED)
    loader = Loader(library, "unit")

    def refused(code, data, **options):
        assert loader.load(data, **options) == code
        assert (loader.memory == 0xEE).all()

    for size in [*range(4, 128, 31), 128, *rng.sample(range(129, len(data)), 40), len(data) - 1]:
        refused(SHORT, data[:size], room=1 << 16)
    for size in range(4):
        refused(FORMAT, data[:size], room=1 << 16)
    refused(FORMAT, b"ONNX" + data[4:])
    refused(VERSION, data[:4] + b"\2" + data[5:])
    for place in [12, *range(16, 128, 3), *rng.sample(range(128, len(data)), 100)]:
        refused(CHECKSUM, data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :], room=1 << 20)
    refused(MEMORY, data, room=int.from_bytes(data[16:20], "little") - 4)
    refused(MEMORY, data, address=ADDRESS + 128)
    assert loader.load(data) == 0
    for other in ("ecp5", "default"):
        loader = Loader(library, other)
        refused(HARDWARE, data)
    assert library.tw_model_memory(data, ctypes.c_size_t(len(data))) == len(compiled.image)
    assert library.tw_model_memory(b"x" * 200, ctypes.c_size_t(200)) == 0


def test_what_the_host_computes_is_refused():
    """Before and after the engines."""
    maker = NetworkMaker(SEED)
    scores = maker.conv(maker.input((1, 16, 4, 4)), 16, 1)
    with pytest.raises(ModelError, match=r"Softmax.*the host computes it after the engines"):
        container(compile_network(maker.graph(maker.softmax(scores)), "unit"))
    form = Form(1, 6, 4, 5, opset=18)
    x = form.both(form.node("Neg", "x"))
    y = form.both(form.node("Conv", x, form.weights(6, 6, 1, 1)[0]))
    with pytest.raises(ModelError, match=r"Neg.*the host computes it before the engines"):
        container(compile_network(read_model(form.model(y)), "unit"))


def test_command_writes_a_container_and_an_array(tmp_path, capsys):
    proto = draw_network(np.random.default_rng(SEED), 4)
    path, out = tmp_path / "m.onnx", tmp_path / "a-model.twm"
    path.write_bytes(proto.SerializeToString())
    assert main(["compile", str(path), "--preset", "unit", "--out", str(out), "--c-array"]) == 0
    data = out.read_bytes()
    assert data == container(compile_network(path, "unit"))
    assert (tmp_path / "a-model.c").read_text() == c_array(data, "a_model")
    program = '#include <stdio.h>\n#include "a-model.c"\nint main(void) { fwrite(a_model, 1, a_model_size, stdout); }\n'
    (tmp_path / "main.c").write_text(program)
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout == data
    assert main(["compile", str(path), "--preset", "unit", "--c-array"]) == 2
    assert "--c-array goes with --out FILE.twm" in capsys.readouterr().err
