"""Products on a session of the processing engine: arrays and a type by name in, numbers and cycles out."""

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright import golden
from tilewright.golden.pe.checks import instruction_word
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.session import Session
from tilewright.spec.pe import PE_ID_VALUE, MmType, Operation, PeError

SEED = 11


session = session_fixture("unit", engines=["pe"])


def operands(kind, *shape):
    rng = np.random.default_rng(SEED)
    if np.dtype(kind).kind == "f":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


@pytest.mark.parametrize(
    ("name", "a", "b", "options"),
    [
        ("s8s8", np.int8, np.int8, {}),
        ("u16s16", np.uint16, np.int16, {"transpose": 1}),
        ("fp16", np.float16, np.float16, {"ka": 2, "swizzle": "64B"}),
    ],
)
def test_a_product_is_the_golden_one(session, name, a, b, options):
    a, b = operands(a, 6, 20), operands(b, 20, 5)
    run = session.multiply(a, b, name, **options)
    expected = golden.multiply(a, b, name, sizes=session.params.pe, **options)
    assert run.product.dtype == expected.dtype
    assert (run.product == expected).all()
    if expected.dtype != np.float32:
        assert (run.product == (a.astype(np.int64) @ b.astype(np.int64)).astype(expected.dtype)).all()
    assert (run.faults, len(run.halts), run.finished) == ([], 1, True)
    assert 0 < run.span <= run.cycles


def test_a_product_is_added_to(session):
    a, b, c = operands(np.int8, 3, 8), operands(np.int8, 8, 2), np.arange(6, dtype=np.int32).reshape(3, 2)
    run = session.multiply(a, b, "s8s8", c)
    assert (run.product == a.astype(np.int32) @ b.astype(np.int32) + c).all()


def test_a_program_runs_as_it_is(session):
    a, b = operands(np.int8, 3, 2, 8), operands(np.int8, 8, 2)
    size = len(session.shared_memory)
    program = golden.gemm_program(a, b, "s8", sizes=session.params.pe, size_bytes=size)
    run = session.run(program=program)
    assert (run.product == np.tensordot(a.astype(np.int32), b.astype(np.int32), 1)).all()
    assert (run.product.view(np.uint32) == program.run()).all()
    shown = f"Run: finished after {run.cycles} cycles; 1 halts, 0 faults; product of shape (3, 2, 2) and int32"
    assert repr(run) == shown
    assert session.run(program=program.words[-1:]).product is None


@pytest.mark.long
def test_hardware_without_floats():
    """Products are refused before they begin, instructions when they come."""
    params = PE_PRESETS["unit"].replace(types=("i8", "i16"))
    a, b = operands(np.int16, 5, 12), operands(np.int16, 12, 3)
    halves = a.astype(np.float16), b.astype(np.float16)
    with Session(params=CoreParams(pe=params)) as session:
        assert (session.multiply(a, b, "s16").product == (a.astype(np.int64) @ b).astype(np.int32)).all()
        assert session.registers()["params1"] >> 24 == 0b0011
        with pytest.raises(ValueError, match=r"^the machine does not have the type f16: its types are i8, i16$"):
            session.multiply(*halves, "f16")
        size = len(session.shared_memory)
        program = golden.gemm_program(*halves, "f16", sizes=PE_PRESETS["unit"], size_bytes=size)
        with pytest.raises(ValueError, match=r"^the program multiplies f16, and the hardware takes i8, i16$"):
            session.run(program=program)
        run = session.run(program=[instruction_word(Operation.MM, type=MmType.BF16), instruction_word(Operation.HALT)])
        assert [(fault.code, fault.register, fault.last) for fault in run.faults] == [
            (PeError.UNSUPPORTED, MmType.BF16, params.threads - 1)
        ]
        assert len(run.halts) == 1


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (ValueError, lambda s, a: s.run(program=golden.gemm_program(a, a, "s8s8")),
         "the program is made for 16 threads, and the hardware has 4: give it sizes"),
        (ValueError, lambda s, a: s.run(program=golden.gemm_program(a, a, "s8s8", sizes=s.params.pe), pages={}),
         "a Program brings its segments and pages: they must be left out"),
        (TypeError, lambda s, a: s.multiply(a, a, "s8s8", sizes=s.params.pe),
         "sizes must be left out: the hardware has its own"),
        (TypeError, lambda s, a: s.multiply(a.astype(np.float16), a, "s8s8"),
         "a must be an array of int8, or uint8 as raw bits, for type s8s8, not an array of shape (4, 4) and float16"),
        (TypeError, lambda s, a: s.run(program="halt"), "program must be a list, not 'halt'"),
        (TypeError, lambda s, a: s.run(segments=[1]),
         "segments must be a dictionary of words by their numbers, not [1]"),
        (ValueError, lambda s, a: s.run(after={"instructions": ["page"]}),
         "after must name ports among instructions, segments, pages, barriers, registers, not 'page'"),
        (ValueError, lambda s, a: s.run(drain=-1), "drain must be 0 to 4294967295, not -1"),
        (ValueError, lambda s, a: s.run([1]), "commands must be left out: the core has no access unit"),
        (ValueError, lambda s, a: s.run(reads=[[0]]),
         "reads must be left out: shared memory is read by the engines of the core"),
        (ValueError, lambda s, a: s.place(a), "the core has no access unit, and so no global memory"),
        (ValueError, lambda s, a: s.configure(latency=5), "the core has no access unit, and so no global memory"),
        (ValueError, lambda s, a: s.run(memory=True), "the core has no access unit"),
        (TypeError, lambda s, a: Session("unit", ["pe"], patience="x"), "patience must be an integer, not 'x'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_the_simulator_lives(session, kind, call, sentence):
    array = np.eye(4, dtype=np.int8)
    with pytest.raises(kind) as caught:
        call(session, array)
    assert str(caught.value) == sentence
    assert (session.multiply(array, array, "s8s8").product == array).all()


def test_registers_by_name(session):
    assert session.read_register("id") == PE_ID_VALUE == session.registers()["id"]
    session.write_register("irq_enable", 2)
    assert session.read_register("irq_enable") == 2
    with pytest.raises(ValueError, match=r"^there is no register 'idd'$"):
        session.read_register("idd")
