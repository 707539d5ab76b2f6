"""Programs on the whole core: engines, barriers, waits, ends, and all errors."""

import numpy as np
import pytest

from tilewright.golden import (
    ConvParams,
    Core,
    DeadlockError,
    GlobalMemory,
    PeSizes,
    ProgramRecord,
    Windows,
    command_word,
    conv_words,
    instruction_word,
    job_word,
    program_bytes,
    program_word,
    tmau_word,
)
from tilewright.golden.smem import Barrier
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BarrierOp, Error
from tilewright.spec.conv import ConvError
from tilewright.spec.core import Engine, Kind, ProgramError
from tilewright.spec.pe import Operation, PeError

GMEM_BYTES, SMEM_BYTES = 1 << 16, 4096
PROGRAM, INSTRUCTIONS, DATA = 0x8000, 0xC000, 0x100
BARRIER = 0x40

END = program_word("end")
INIT = program_word("barrier", operation="init", barrier=BARRIER, value=1)


def wait(parity=0, **fields):
    return program_word("barrier", operation="try_wait", barrier=BARRIER, value=parity, **fields)


def arrive(**fields):
    return program_word("barrier", operation="arrive", barrier=BARRIER, value=1, **fields)


def load(address=0x80, **fields):
    """A word that brings 64 bytes of DATA to shared memory."""
    command = {"source": DATA, "destination": address, "destination_space": "shared", "size": 64}
    return tmau_word(command_word("copy_block", **command | fields))


def job(**fields):
    """The words of a job that takes the largest of four bytes at 0x80 to 0x100."""
    values = {"operation": "max_pool", "type": "u8u8", "output": "element", "granularity": 1, "x": 0x80, "y": 0x100,
              "width": 4, "kernel": (4, 1), "x_pitch": (1, 4, 4), "y_pitch": (1, 1, 1)}  # fmt: skip
    return conv_words(job_word(**values | fields))


def pe(*instructions, core, address=INSTRUCTIONS, **fields):
    """A PE word; the instructions are placed."""
    raw = b"".join(word.to_bytes(16, "little") for word in instructions)
    core.gmem.write(address, raw)
    return program_word("pe", **{"address": address, "count": len(instructions)} | fields)


def bar_wait(parity=0, address=BARRIER):
    return instruction_word(Operation.BAR_WAIT, parity=parity, imm=address)


def wrong_instruction():
    return instruction_word(Operation.MOVU, ud=200)


def machine(**options):
    gmem = GlobalMemory(GMEM_BYTES)
    gmem.write(DATA, np.arange(1, 65, dtype=np.uint8))
    options = {"pe": PeSizes(threads=4, regs=16), "conv": ConvParams()} | options
    return Core(gmem, np.zeros(SMEM_BYTES, np.uint8), **options)


@pytest.fixture
def core():
    return machine()


def run(core, *words, address=PROGRAM, count=None, limit=None):
    core.gmem.write(address, program_bytes(words))
    return core.run(address, len(words) if count is None else count, limit)


def stopped(code, word, tag=0, engine=Engine.NONE):
    return ProgramRecord(ProgramError[code.upper()], engine, tag, word)


def test_the_end(core):
    assert run(core, END) is None
    assert core.interrupts == 0
    assert run(core, program_word("end", interrupt=1)) is None
    assert core.interrupts == 1


def test_a_command_is_handed_over_without_the_kind(core):
    assert run(core, load(), END) is None
    assert core.smem[0x80:0xC0].tolist() == list(range(1, 65))
    assert not core.smem[0xC0:].any()


def test_a_job_is_the_next_two_words(core):
    assert run(core, load(), *job(), END) is None
    assert core.smem[0x100] == 4


def test_halves_of_a_job_have_no_kind(core):
    """The low half would be an END by its batch."""
    words = job(batch=0x8001, tag=3)
    assert words[1] >> 508 == Kind.END
    assert run(core, *words, END) == stopped("engine", 3, 3, Engine.CONV)


def test_instructions_in_order_over_several_words(core):
    instructions = [instruction_word(Operation.MOV, rd=number, imm=number + 1) for number in range(9)]
    assert run(core, pe(*instructions, core=core, count=6), END) is None
    assert core.pe.registers[0].tolist() == [1, 2, 3, 4, 5, 6] + [0] * 10
    assert core.pe.number == 6


def test_barrier_operations(core):
    words = [program_word("barrier", operation=operation, barrier=BARRIER, value=value)
             for operation, value in (("init", 3), ("arrive", 2), ("expect_tx", 100), ("complete_tx", 30))]  # fmt: skip
    assert run(core, *words, END) is None
    assert Barrier.read(core.smem, BARRIER) == Barrier(pending=1, expected=3, transactions=70, phase=0)


def test_waits_see_work_of_engines(core):
    expect = program_word("barrier", operation="expect_tx", barrier=BARRIER, value=64)
    loads = [INIT, load(signal=1, barrier=BARRIER), expect, arrive(), wait(0)]
    assert run(core, *loads, *job(signal=1, barrier=BARRIER), wait(1), pe(bar_wait(1), core=core), END) is None
    assert core.smem[0x100] == 4


@pytest.mark.parametrize("engines", range(8))
def test_wait_all_of_what_has_ended(core, engines):
    assert run(core, load(), *job(), program_word("wait_all", engines=engines), END) is None


def test_a_loop(core):
    """Two phases a round: the parities of the body are those of every round."""
    assert run(core, INIT, arrive(), wait(0), arrive(), wait(1), program_word("loop", count=5, back=4), END) is None
    # Each round adds to the words at DATA.
    add = tmau_word(
        command_word("copy_block", destination=DATA, source=0x80, source_space="shared", size=16, reduction="add",
                     element="u32")
    )  # fmt: skip
    core.smem[0x80:0x90].view("<u4")[:] = 7
    before = core.gmem.read(DATA, 16).view("<u4")
    assert run(core, add, program_word("loop", count=6, back=1), END) is None
    assert (core.gmem.read(DATA, 16).view("<u4") == before + 42).all()


def test_steps_come_before_their_execution(core):
    core.gmem.write(PROGRAM, program_bytes([load(), *job(), program_word("loop", count=2, back=1), END]))
    steps = []
    for step in core.steps(PROGRAM, 5):
        steps.append((step.index, step.kind, int(core.smem[0x80])))
    assert steps[:3] == [(0, Kind.TMAU, 0), (1, Kind.CONV, 1), (4, Kind.LOOP, 1)]
    # A loop into the middle of a job: its half is a word of no kind.
    assert steps[3] == (3, None, 1)
    assert core.record == stopped("kind", 3)


def test_a_new_program_clears_errors(core):
    assert run(core, load(size=8), END).code == ProgramError.ENGINE
    assert run(core, load(), END) is None
    assert core.tmau.errors == []
    assert core.record is None


#: Words, and the record of the program that they begin, followed by END.
WRONG = [
    ([0], ("kind", 0)),
    ([10 << 508 | 0xBEEF << 16], ("kind", 0, 0xBEEF)),
    ([INIT, program_word("end", tag=7) | 1 << 300], ("reserved", 1, 7)),
    ([load(tag=5) | 1 << 31], ("reserved", 0, 0x8005)),
    ([program_word("loop", back=1, tag=4)], ("count", 0, 4)),
    ([program_word("kernel", count=13, tag=5)], ("count", 0, 5)),
    ([program_word("kernel", entry=256, tag=6)], ("engine", 1, 0, Engine.PE)),
    ([program_word("kernel", first=7, count=2, tag=6)], ("engine", 1, 0, Engine.PE)),
    ([program_word("pe", address=INSTRUCTIONS + 16, count=1, tag=5)], ("address", 0, 5)),
    ([program_word("pe", address=2**64 - 64, count=4)], ("bus", 0)),
    ([program_word("pe", address=GMEM_BYTES - 64, count=5, tag=6)], ("bus", 0, 6)),
    ([INIT, program_word("loop", count=2, back=2, tag=8)], ("loop", 1, 8)),
    ([INIT, program_word("loop", count=2)], ("loop", 1)),
    ([program_word("register", engine="tmau", offset=0x70, value=0, tag=9)], ("register", 0, 9)),
    ([program_word("barrier", operation="init", barrier=SMEM_BYTES, value=1, tag=1)], ("barrier", 0, 1)),
    ([program_word("barrier", operation="init", barrier=0, value=0)], ("barrier", 0)),
    ([INIT, arrive(), program_word("barrier", operation="arrive", barrier=BARRIER, value=2, tag=2)], ("barrier", 2, 2)),
    ([INIT, program_word("barrier", operation="expect_tx", barrier=BARRIER, value=(1 << 20) - 1),
      program_word("barrier", operation="expect_tx", barrier=BARRIER, value=1)], ("barrier", 2)),
    ([load(size=8, tag=3)], ("engine", 1, 3, Engine.TMAU)),
    (job(channels=3, tag=0xFFFF), ("engine", 3, 0xFFFF, Engine.CONV)),
    # An arrival that is refused: by the access unit, which has all refused operations.
    (job(signal=1, barrier=0x200, tag=4), ("engine", 3, 0, Engine.TMAU)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "record"), WRONG)
def test_every_error(core, words, record):
    assert run(core, *words, END) == stopped(*record)
    assert run(core, load(), END) is None


def test_a_kernel_gets_its_arguments_and_waits_for_what_was_issued(core):
    """Twice with different arguments; it waits for the bytes that a load brings."""
    kernel = assemble_program("mov r1, ur3\nadd r1, r1, ur4\nbar.wait 0x40, 0\nreturn")
    loaded = [instruction_word(Operation.LOAD, imm=200, n=len(kernel)), *kernel]
    words = [INIT, program_word("barrier", operation="expect_tx", barrier=BARRIER, value=64), arrive(),
             load(signal=1, barrier=BARRIER), pe(*loaded, core=core),
             program_word("kernel", entry=200, first=3, count=2, argument=[5, 6])]  # fmt: skip
    assert run(core, *words, END) is None
    assert (core.pe.registers[:, 1] == 11).all() and core.pe.number == 1 + 2 + 5
    assert run(core, program_word("kernel", entry=200, first=4, count=1, argument=[1 << 31]), END) is None
    assert (core.pe.registers[:, 1] == 5 + (1 << 31)).all() and core.pe.uniform[3:5] == [5, 1 << 31]


def test_a_kernel_that_waits_for_ever(core):
    kernel = [instruction_word(Operation.LOAD, n=2), bar_wait(), instruction_word(Operation.RETURN)]
    with pytest.raises(DeadlockError, match=r"^word 2 waits for ever: the processing engine waits in this word"):
        run(core, INIT, pe(*kernel, core=core), program_word("kernel"), END)


def test_codes_with_other_tests():
    """The others have tests of their own."""
    missing = set(ProgramError) - {stopped(*record).code for _, record in WRONG}
    assert missing == {ProgramError[name] for name in ("NONE", "MISSING", "WINDOW", "NO_END", "WATCHDOG", "STOPPED")}


def test_a_refused_word_does_nothing(core):
    before = core.smem.copy()
    run(core, program_word("barrier", operation="init", barrier=0, value=1 << 20))
    run(core, program_word("barrier", operation="init", barrier=0, value=1) | 1 << 200)
    assert (core.smem == before).all()
    assert core.tmau.errors == []
    run(core, program_word("barrier", operation="arrive", barrier=0, value=1))
    assert [record.code for record in core.tmau.errors] == [Error.BARRIER_OPERATION]


def test_the_program_stops_at_once(core):
    run(core, 0, load(), END)
    assert not core.smem.any()


def test_without_a_convolution_engine():
    core = machine(conv=None)
    assert run(core, *job(tag=6), END) == stopped("missing", 0, 6)
    assert run(core, program_word("register", engine="conv", offset=0x20, tag=7), END) == stopped("missing", 0, 7)
    assert run(core, program_word("wait_all", engines=7), END) is None


def test_past_the_last_word(core):
    assert run(core, load(), load()) == stopped("no_end", 2)
    assert run(core, END, count=0) == stopped("no_end", 0)
    assert run(core, *job(), END, count=2) == stopped("no_end", 2)
    assert run(core, *job(tag=3), END, count=1) == stopped("no_end", 1)


@pytest.mark.parametrize(
    ("address", "words", "record"),
    [
        (PROGRAM + 32, 1, ("address", 0)),
        (2**64 - 128, 3, ("address", 0)),
        (2**64 - 128, 2, ("bus", 0)),
        (GMEM_BYTES, 1, ("bus", 0)),
        (GMEM_BYTES - 64, 2, ("bus", 1)),
    ],
)
def test_wrong_addresses_of_programs(core, address, words, record):
    core.gmem.write(GMEM_BYTES - 64, program_bytes([INIT]))
    assert core.run(address, words) == stopped(*record)


def test_the_address_space():
    core = machine(addr_width=16)
    assert run(core, END, address=GMEM_BYTES - 64) is None
    assert run(core, END, address=GMEM_BYTES - 64, count=2) == stopped("address", 0)
    assert core.run(GMEM_BYTES, 1) == stopped("address", 0)


def test_the_window():
    core = machine(program_window=(PROGRAM + 100, PROGRAM + 0x1001))
    assert run(core, END, address=PROGRAM) is None
    assert run(core, END, address=PROGRAM + 0x1FC0) is None
    assert run(core, END, address=PROGRAM + 0x1FC0, count=2) == stopped("window", 0)
    assert run(core, END, address=PROGRAM - 64) == stopped("window", 0)
    assert run(core, END, address=PROGRAM - 64, count=0) == stopped("no_end", 0)
    inside, outside = (program_word("pe", address=PROGRAM + 0x1FC0, count=count, tag=count) for count in (4, 5))
    core.gmem.write(PROGRAM + 0x1FC0, b"".join(bar_wait(1).to_bytes(16, "little") for _ in range(4)))
    assert run(core, inside, END) is None
    assert run(core, outside, END) == stopped("window", 0, 5)
    # Commands are not confined by it, but by windows of their own.
    assert run(core, load(), END) is None
    core = machine(windows=Windows((PROGRAM, PROGRAM + 0xFFF)))
    assert run(core, load(tag=1), END, address=0x200) == stopped("engine", 1, 1, Engine.TMAU)


def test_the_host_stops_a_program(core):
    assert run(core, load(), program_word("end", tag=7), limit=1) == stopped("stopped", 1, 7)
    assert core.smem[0x80]
    assert run(core, load(), END, limit=2) is None
    endless = [INIT, program_word("loop", count=2**32 - 1, back=1)]
    assert run(core, *endless, END, limit=1001) == stopped("stopped", 1)


WAITS = [([INIT, wait(0, tag=1), END], 1, 1), ([INIT, wait(1), arrive(), wait(0), wait(1, tag=2), END], 4, 2)]


@pytest.mark.parametrize(("words", "index", "tag"), WAITS)
def test_a_barrier_without_arrivals(words, index, tag):
    assert run(machine(watchdog=True), *words) == stopped("watchdog", index, tag)
    with pytest.raises(DeadlockError, match=rf"word {index} waits for ever: nothing completes the phase of parity"):
        run(machine(), *words)


def test_a_waiting_instruction_outlives_its_program():
    core = machine(watchdog=True)
    word = pe(bar_wait(0), instruction_word(Operation.MOV, rd=1, imm=5), core=core, tag=4)
    assert run(core, INIT, word, END) == stopped("watchdog", 1, 4)
    # It still waits: for the engine nothing else is done, and all else is.
    assert run(core, load(), wait_all("tmau"), wait_all("pe", tag=5), END) == stopped("watchdog", 2, 5)
    assert core.smem[0x80] == 1
    assert run(core, END) == stopped("watchdog", 0)
    word = pe(instruction_word(Operation.MOV, rd=2, imm=6), core=core)
    assert run(core, arrive(), word, END) is None
    # Instructions that were not handed over are dropped.
    assert core.pe.registers[0, 1:3].tolist() == [0, 6]
    assert core.pe.number == 2


def wait_all(*engines, **fields):
    return program_word("wait_all", engines=sum(1 << Engine[name.upper()] - 1 for name in engines), **fields)


def test_without_a_watchdog_it_is_a_deadlock(core):
    word = pe(bar_wait(0), core=core)
    with pytest.raises(DeadlockError, match="word 1 waits for ever: the processing engine waits in this word"):
        run(core, INIT, word, END)


@pytest.mark.parametrize("word", [END, wait_all(), wait_all("conv"), wait(1)])
def test_errors_of_engines_stop_waits(core, word):
    assert run(core, INIT, load(size=8, tag=3), word, END) == stopped("engine", 2, 3, Engine.TMAU)


def test_an_engines_error_ends_a_wait(core):
    """A load that is refused does not complete its barrier."""
    words = [INIT, load(size=8, tag=3), wait(0), END]
    assert run(core, *words) == stopped("engine", 2, 3, Engine.TMAU)
    words = [INIT, load(size=8, tag=3), pe(bar_wait(0), core=core), END]
    assert run(core, *words) == stopped("engine", 2, 3, Engine.TMAU)


def test_errors_of_instructions(core):
    word = pe(wrong_instruction(), core=core, tag=9)
    assert run(core, word, load(), END) == stopped("engine", 2, 0, Engine.PE)
    assert core.pe.faults[0].code == PeError.UNIFORM


def test_the_lowest_engine_counts(core):
    words = [*job(channels=3, tag=1), pe(wrong_instruction(), core=core), load(size=8, tag=2)]
    assert run(core, *words, END) == stopped("engine", 5, 2, Engine.TMAU)
    assert run(core, *words[:4], END) == stopped("engine", 4, 0, Engine.PE)
    assert run(core, *words[:3], END) == stopped("engine", 3, 1, Engine.CONV)
    assert core.conv.errors[0].code == ConvError.CHANNELS


def test_instructions_before_a_bus_error_are_executed(core):
    instructions = [instruction_word(Operation.MOV, rd=0, imm=number + 1) for number in range(4)]
    word = pe(*instructions, core=core, address=GMEM_BYTES - 64, count=6, tag=2)
    assert run(core, word, END) == stopped("bus", 0, 2)
    assert core.pe.registers[0, 0] == 4


def test_barriers_may_lie_anywhere_in_shared_memory(core):
    last = SMEM_BYTES - 8
    assert run(core, program_word("barrier", operation="init", barrier=last, value=1), END) is None
    assert Barrier.read(core.smem, last).expected == 1
    assert core.tmau.barrier(BarrierOp.ARRIVE, last, 1)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"watchdog": 1}, TypeError, "watchdog must be True or False, not 1"),
        ({"conv": 5}, TypeError, "params must be golden.ConvParams, not 5"),
        ({"pe": 5}, TypeError, "sizes must be golden.PeSizes, or have its attributes, not 5"),
        ({"windows": 5}, TypeError, "windows must be golden.Windows, not 5"),
    ],
)
def test_wrong_arguments(options, error, sentence):
    with pytest.raises(error) as caught:
        machine(**options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((-1, 1), f"address must be 0 to {2**64 - 1}, not -1"),
        ((0, 1 << 32), f"words must be 0 to {2**32 - 1}, not {1 << 32}"),
    ],
)
def test_wrong_programs(core, arguments, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared below
        core.run(*arguments)
    assert str(caught.value) == sentence
