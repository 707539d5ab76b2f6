"""Products in programs that fit, on the golden model in place of hardware."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden.pe.machine import Fault
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.replay.pe_cases import run_on_golden
from tilewright.sim.session.products import PeProgram
from tilewright.sim.workloads.multiplier import Multiplier, expected_product
from tilewright.spec.pe import PeError

UNIT = PE_PRESETS["unit"]
TINY = UNIT.replace(smem=SmemParams(2048))


class Stub:
    """A session whose engine is the golden model; ``spoil`` changes what a run leaves."""

    def __init__(self, params, spoil=lambda smem: None, faults=()):
        self.params = SimpleNamespace(pe=params)
        self.shared_memory = self
        self.programs = 0
        self._smem = None
        self._spoil, self._faults = spoil, list(faults)

    def write(self, address, values):
        assert address == 0
        self._smem = values.copy()

    def read(self, address, count):
        return self._smem[address : address + count]

    def run(self, program, *, segments, pages):
        result = run_on_golden(PeProgram(self.params.pe, self._smem, segments, pages, tuple(program)))
        self._smem = result.smem
        self._spoil(self._smem)
        self.programs += 1
        return SimpleNamespace(span=1000, faults=result.faults + self._faults)


def matrices(m, n, k, first=np.int8, second=np.uint8):
    """A and B of small whole numbers, as their types have them."""
    numbers = np.random.default_rng(m + n + k)
    return (numbers.integers(0, 9, shape).astype(dtype) for shape, dtype in (((m, k), first), ((k, n), second)))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(80, 4, 8), (4, 160, 8), (3, 5, 300), (1, 1, 1500)], ids=["rows", "columns", "k", "one"]
)
@pytest.mark.parametrize("types", [(np.int8, np.uint8), (np.uint16, np.int16), (np.float16, np.float16)])
def test_product_is_cut_until_it_fits(m, n, k, types):
    stub = Stub(TINY)
    multiplier = Multiplier(stub)
    a, b = matrices(m, n, k, *types)
    seen = multiplier.product(a, b)
    # Sums of small whole numbers are exact in floats too.
    wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32 if types[0] == np.float16 else np.uint32)
    assert (seen.view(wanted.dtype) == wanted).all()
    assert multiplier.totals.problems == []
    assert multiplier.totals.parts == stub.programs > 1
    assert multiplier.totals.work == m * n * k


def test_what_is_added_to_is_cut_too():
    a, b = matrices(24, 40, 8)
    c = np.arange(24 * 40, dtype=np.uint32).reshape(24, 40) + 0xFFFFFF00
    seen = Multiplier(Stub(TINY)).product(a, b, c)
    assert (seen == (c + a.astype(np.int64) @ b.astype(np.int64)).astype(np.uint32)).all()


def test_work_cycles_and_limit_are_counted_by_case():
    multiplier = Multiplier(Stub(UNIT))
    a, b = matrices(4, 4, 9)
    for case in ("one", "two", None):
        multiplier.product(a, b, case=case)
    assert list(multiplier.cases) == ["one", "two"]
    # 144 MACs on 4 threads of 8 multipliers.
    assert [(each.work, each.cycles, each.limit) for each in multiplier.cases.values()] == [(144, 1000, 5)] * 2
    assert (multiplier.totals.work, multiplier.totals.cycles, multiplier.totals.limit) == (432, 3000, 15)


def test_types_of_16_bits_have_half_of_the_multipliers():
    multiplier = Multiplier(Stub(UNIT))
    multiplier.product(*matrices(4, 4, 8, np.int16, np.int16))
    assert multiplier.totals.limit == 8


def test_changed_byte_anywhere_is_found():
    def spoil(smem):
        smem[-1] ^= 1

    multiplier = Multiplier(Stub(UNIT, spoil))
    multiplier.product(*matrices(4, 4, 8), case="one")
    assert multiplier.totals.problems == ["shared memory after 0 programs: 1 of 16384 values differ"]
    assert multiplier.cases["one"].problems == multiplier.totals.problems


def test_reported_error_is_a_problem():
    multiplier = Multiplier(Stub(UNIT, faults=[Fault(PeError.SEGMENT, 7, 0, 3, 0)]))
    multiplier.product(*matrices(4, 4, 8))
    assert multiplier.totals.problems == ["SEGMENT of instruction 7 after 0 programs"]


def test_product_that_no_cut_helps_is_refused():
    with pytest.raises(ValueError, match=r"^ka 4 times kb 4 is more than 4 threads$"):
        Multiplier(Stub(UNIT)).product(*matrices(5, 6, 7), ka=4, kb=4)


def test_floats_are_rounded_once_for_every_step():
    # 1 + 2^-24 twice: each by itself is rounded away, both together are not.
    a = np.array([[1, 2.0**-24, 2.0**-24]]).astype(ml_dtypes.bfloat16)
    b = np.ones((3, 1), ml_dtypes.bfloat16)
    assert expected_product(a, b, None, 1).view(np.float32) == 1
    assert expected_product(a, b, None, 3).view(np.float32) == np.float32(1 + 2.0**-23)
