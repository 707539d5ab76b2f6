"""Replay cases of the command processor (docs/replay.md, "Kind core"): reading them, and running them on golden."""

from dataclasses import dataclass

import numpy as np

from tilewright.errors import UsageError
from tilewright.golden import ConvParams, Core, DeadlockError, Memory, Windows, program_bytes
from tilewright.golden.memory import fill_pattern, mix_pattern
from tilewright.hw.pe.params import PeParams
from tilewright.spec.core import ProgramError
from tilewright.spec.fields import spoken

from ..asm.core import assemble_core
from ..asm.pe import BITS, assemble_program
from ..session.golden_options import core_options
from .conv_cases import read_conv_params
from .fields import Fields, read_image, read_text, whole_words
from .maps import read_placed_map, read_window, read_windows, with_maps
from .outcome import Judgement, Outcome, read_expectation
from .pe_cases import read_params

__all__ = ["CoreCase", "core_outcome", "judge_core_case", "read_core_case"]

_INSTRUCTION_BYTES = BITS // 8


@dataclass(frozen=True)
class CoreCase:
    """A case of kind core.

    Attributes
    ----------
    name, kind : str
    expect : dict
        As in :class:`cases.Case`.
    gmem, smem : uint8 array
        At the start, with descriptors, program and instructions.
    address, words : int
        Of the program.
    pe : PeParams
        With the shared memory.
    conv : ConvParams or None
        None: the core has no convolution engine.
    windows : Windows
        Of the TMAU.
    program_window : (int, int) or None
    watchdog : int
        In cycles; 0: no watchdog.
    """

    name: str
    kind: str
    expect: dict
    gmem: np.ndarray
    smem: np.ndarray
    address: int
    words: int
    pe: PeParams
    conv: ConvParams | None
    windows: Windows
    program_window: tuple[int, int] | None
    watchdog: int


def read_core_case(fields, name, expect, folder):
    """Reads the rest of a case; ``expect`` is its member of this name, or None."""
    gmem = read_image(fields.inner("gmem"), 1 << 28, (mix_pattern, 0), folder)
    smem = read_image(fields.inner("smem"), 1 << 20, (fill_pattern, 205), folder)
    pe = read_params(fields, smem.size)
    conv = read_conv_params(fields) if "conv" in fields else None
    confined = fields.inner("windows", None)
    program_window = None if confined is None else read_window(confined, "program", 64)
    windows = read_windows(confined)
    memory = with_maps(gmem.contents(), _read_maps(fields, gmem.size))
    for index, entry in enumerate(fields.listed("instructions", [])):
        member = Fields(entry, fields.case, f"instructions[{index}]")
        words = read_text(member, "text", assemble_program)
        _place(member, memory, b"".join(word.to_bytes(_INSTRUCTION_BYTES, "little") for word in words))
        member.end()
    program = read_text(fields, "program", assemble_core)
    address = _place(fields, memory, program_bytes(program))
    words = fields.integer("words", 0, (1 << 32) - 1, len(program))
    watchdog = fields.integer("watchdog", 0, (1 << 32) - 1, 0)
    fields.end()
    expected = read_expectation(expect, ProgramError, {"gmem": gmem.size, "smem": smem.size})
    return CoreCase(name, "core", expected, memory, smem.contents(), address, words, pe, conv, windows,
                    program_window, watchdog)  # fmt: skip


def _read_maps(fields, gmem_bytes):
    """Reads maps by name; each must have an address in global memory."""
    listed = fields.inner("maps", None)
    maps = {}
    for name in listed.remaining() if listed else ():
        inner = listed.inner(name)
        if "at" not in inner:
            raise inner.wrong("at", "is missing")
        maps[name] = read_placed_map(inner, gmem_bytes, Windows())
    return maps


def _place(fields, memory, raw):
    """Writes bytes at the address in the member ``at``; returns the address."""
    address = fields.integer("at", 0, len(memory))
    if address + len(raw) > len(memory):
        raise fields.wrong("at", f"must keep {len(raw)} bytes in the {len(memory)} bytes of gmem, not {address}")
    memory[address : address + len(raw)] = np.frombuffer(raw, np.uint8)
    return address


def judge_core_case(case, hardware=None):
    """Runs a case on the golden model of ``hardware``, CoreParams or None; a :class:`Judgement`.

    UsageError if it waits for ever without a watchdog.
    """
    options = core_options(hardware) if hardware else {"pe": case.pe, "conv": case.conv}
    core = Core(
        Memory(whole_words(case.gmem, options.get("bus_bytes", 1)), "global memory"),
        case.smem.copy(),
        **options,
        windows=case.windows,
        program_window=case.program_window,
        watchdog=case.watchdog > 0,
    )
    try:
        record = core.run(case.address, case.words)
    except DeadlockError as error:
        raise UsageError(f"case {case.name!r}: {error}") from None
    outcome = core_outcome(case, record, core.interrupts > 0, core.gmem.data[: len(case.gmem)], core.smem)
    return Judgement.of(outcome, {"gmem": core.gmem.open_bytes, "smem": core.tmau.open_bytes})


def core_outcome(case, record, interrupt, gmem, smem):
    """The :class:`Outcome` of a case from its ProgramRecord or None, the interrupt at its end, and memories."""
    fields = {
        "name": case.name,
        "error": record and record.code.name.lower(),
        "record": record and {
            "tag": record.tag,
            "engine": spoken(record.engine) if record.engine else None,
            # Hardware decides at which word an engine's error stops a program.
            "word": None if record.code == ProgramError.ENGINE else record.word,
        },
        "interrupt": interrupt,
    }  # fmt: skip
    return Outcome.of(fields, {"gmem": gmem, "smem": smem})
