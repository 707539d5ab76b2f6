"""Programs of the processing engine on hardware and golden: shared memory, and every error record."""

import json

from tilewright.golden.pe.machine import Pe
from tilewright.sim.asm.pe import disassemble_instruction
from tilewright.sim.replay.pe_cases import golden_engine, run_on_golden
from tilewright.spec.pe import PAGE_ENTRY

from .differences import memory_differences, smallest

__all__ = ["ProgramRun", "program_case"]


class _Recorder(Pe):
    """A golden machine that keeps the words of all instructions, by their numbers."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.executed = []

    def step(self, word):
        self.executed.append(word)
        return super().step(word)


class ProgramRun:
    """Compares programs with golden.

    Parameters
    ----------
    runner : callable
        Takes a :class:`PeProgram`; returns a :class:`ProgramResult`.

    Attributes
    ----------
    instructions : int
        Compared so far.
    """

    def __init__(self, runner):
        self._runner = runner
        self.instructions = 0

    def run(self, program):
        """Runs a program; returns one sentence for each difference from golden."""
        golden, seen = golden_engine(program, _Recorder), self._runner(program)
        golden.run(program.words)
        self.instructions += len(golden.executed)
        sentences = memory_differences("shared memory", seen.smem, golden.smem, program.smem, golden.open.memory)
        expected, observed = ({fault.number: fault for fault in result.faults} for result in (golden, seen))
        for number in sorted(expected.keys() | observed.keys()):
            if expected.get(number) != observed.get(number):
                text = _text(golden.executed, number)
                sentences.append(
                    f"instruction {number}, {text}: "
                    f"{_spoken(observed.get(number))}, not {_spoken(expected.get(number))}"
                )
        return sentences

    def report(self, program):
        """Differences of the program with the smallest body that still has any, and that program as a replay case."""
        body = smallest(program.body, lambda part: bool(self.run(program.with_body(part))))
        if body is None:
            return "the program differs no more when it runs again"
        least = program.with_body(body)
        lines = [*self.run(least), "", *map(disassemble_instruction, body), "", program_case("smallest", least)]
        return "\n".join(lines)


def program_case(name, program):
    """A file of one replay case, as a string; ``expect`` is what golden makes of it. Pages that come late are there."""
    pages = program.pages | (program.late or {})
    params = {field: value for field, value in vars(program.params).items() if field != "smem"}
    result = run_on_golden(program)
    fault = result.faults[0] if result.faults else None
    case = {
        "name": name,
        "kind": "program",
        "pe": params,
        "smem": {"bytes": len(program.smem), "init": {"hex": program.smem.tobytes().hex()}},
        "segments": _by_index(program.segments, lambda word: {"word": f"{word:x}"}),
        "pages": _by_index(pages, _page),
        "program": list(map(disassemble_instruction, program.words)),
        "expect": {"error": fault.code.name.lower() if fault else None},
    }
    return json.dumps({"version": 1, "cases": [case]})


def _page(word):
    """A page entry as a case names it; one that is not valid is null."""
    entry = PAGE_ENTRY.unpack(word)
    return {"address": entry["address"], "on_chip": bool(entry["on_chip"])} if entry["valid"] else None


def _by_index(words, spoken):
    """A list of entries by their index, with null for those that are not there."""
    return [spoken(words[index]) if index in words else None for index in range(max(words, default=-1) + 1)]


def _text(executed, number):
    """The text of an instruction; there is none past the end of instruction memory, and after the last one."""
    word = executed[number] if number < len(executed) else None
    return "which does not exist" if word is None else disassemble_instruction(word)


def _spoken(fault):
    if fault is None:
        return "no error"
    return f"{fault.code.name} of threads {fault.first} to {fault.last}, register {fault.register}"
