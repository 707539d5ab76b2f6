"""The driver of the C library on registers that are arrays: what it reads, writes and reports."""

import ctypes

import pytest

from support.c_library import compile_library, open_core
from tilewright.spec import Error
from tilewright.spec.core import PROGRAM_REGISTERS, Engine, ProgramError
from tilewright.spec.pe import PE_REGISTERS, PeError
from tilewright.spec.tmau_registers import TMAU_REGISTERS

TABLES = {"program": PROGRAM_REGISTERS, "tmau": TMAU_REGISTERS, "pe": PE_REGISTERS}
BUSY, IDENTITY, MISSING = 6, 4, 5  # codes of the library
ADDRESS = 0x1_2345_6000


class Fault(ctypes.Structure):
    """``tw_fault``."""

    _fields_ = [("status", ctypes.c_uint32), ("tag", ctypes.c_uint32), ("word", ctypes.c_uint32),
                ("address", ctypes.c_uint64)]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def driver(library):
    """The library, a core, and functions that read and set its registers."""
    core, arrays = open_core(library, "unit")

    def place(name):
        engine, _, register = name.partition(".")
        return arrays[engine], next(each for each in TABLES[engine] if each.name == register)

    def get(name):
        array, register = place(name)
        return array[register.offset // 4]

    def put(name, **fields):
        array, register = place(name)
        array[register.offset // 4] = register.format.pack(**fields)

    return library, core, get, put


def test_a_start_writes_the_program(driver):
    library, core, get, put = driver
    put("program.status", idle=1)
    assert library.tw_start(ctypes.byref(core), ctypes.c_uint64(ADDRESS), 77) == 0
    assert (get("program.program_lo"), get("program.program_hi")) == (ADDRESS & 0xFFFFFFFF, 1)
    assert (get("program.program_words"), get("program.watchdog")) == (77, 1 << 24)
    assert get("program.irq_enable") == 3
    assert get("program.control") == 4  # start, in a write of its own: clear_error came before
    put("program.status", idle=0)
    assert library.tw_start(ctypes.byref(core), ctypes.c_uint64(0), 1) == BUSY | 15 << 16
    core.program = None
    assert library.tw_start(ctypes.byref(core), ctypes.c_uint64(0), 1) == MISSING | 15 << 16


def test_an_interrupt_is_noted_and_cleared(driver):
    library, core, get, put = driver
    put("program.irq_enable", error=1)
    put("program.irq_status", error=1, done=1)
    library.tw_interrupt(ctypes.byref(core))
    assert core.events == 1
    assert get("program.irq_status") == 1  # a one clears the bit


@pytest.mark.parametrize(
    ("record", "engine", "expected"),
    [({"code": ProgramError.WATCHDOG, "tag": 9}, None, (ProgramError.WATCHDOG, 9, 5, 0)),
     ({"code": ProgramError.ENGINE, "engine": Engine.TMAU, "tag": 7},
      ("tmau.error", {"code": Error.READ, "field": 3, "tag": 7}), (Error.READ | 3 << 8 | 1 << 16, 7, 5, 0xF000_1234)),
     ({"code": ProgramError.ENGINE, "engine": Engine.PE}, ("pe.error", {"code": PeError.CONTROL, "register": 4}),
      (PeError.CONTROL | 2 << 16, 0, 5, 0)),
     # Somebody else has cleared the record of the engine.
     ({"code": ProgramError.ENGINE, "engine": Engine.PE}, None, (ProgramError.ENGINE, 0, 5, 0))],
    ids=["watchdog", "bus", "instruction", "cleared"],
)  # fmt: skip
def test_what_stopped_a_program(driver, record, engine, expected):
    library, core, _, put = driver
    put("program.status", idle=1, error=1)
    put("program.error", **record)
    put("program.error_word", index=5)
    if engine:
        put(engine[0], **engine[1])
    if expected[3]:
        put("tmau.error_address_lo", address=expected[3])
    fault = Fault()
    assert library.tw_wait(ctypes.byref(core), None, None, ctypes.byref(fault)) == expected[0] == fault.status
    assert (fault.tag, fault.word, fault.address) == expected[1:]


def test_a_program_that_ended(driver):
    library, core, _, put = driver
    put("program.status", idle=1, done=1)
    assert library.tw_wait(ctypes.byref(core), None, None, None) == 0


def test_another_block_is_refused(driver):
    library, core, _, put = driver
    put("pe.version", major=1)
    assert library.tw_open(ctypes.byref(core)) == IDENTITY | 15 << 16
