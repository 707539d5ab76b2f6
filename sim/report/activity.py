"""The activity of each engine while a program ran: intervals from the stamps of the run."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from tilewright.spec import BLOCK, GROUP, LANES, BarrierOp, Opcode, Space
from tilewright.spec.core import PROGRAM_WORDS, WORD_BITS, Engine, Kind
from tilewright.spec.tmau import COMMAND, LaneLayout

from . import charts

__all__ = ["Activity", "activity"]

_IN, _OUT, _CONV, _PE = "access unit, in", "access unit, out", "convolution engine", "processing engine"
_HANDS, _WAITS = "processor issues", "processor waits"

#: Directions of commands on tensors.
_WAYS = {Opcode.LOAD: _IN, Opcode.STORE: _OUT, Opcode.REDUCE: _OUT}


class Activity(NamedTuple):
    """Intervals in cycles since the start of a run.

    Attributes
    ----------
    title : str
    first, last : int
        The cycles that are shown.
    rows : dict of str to list of (int, int)
        The intervals in which an engine worked, by name of the engine.
    marks : list of (int, int, str)
        Named parts of the program: from, to, name.
    """

    title: str
    first: int
    last: int
    rows: dict
    marks: list = ()

    def _repr_svg_(self):
        return self.svg()

    def svg(self):
        """The intervals over time in cycles, as SVG text."""
        return charts.activity(self)


def activity(run, words, title="A program", marks=(), window=None):
    """The :class:`Activity` of a program; a notebook shows it as a picture.

    In each direction the access unit works on a command from the latest of three events: the command is issued, the
    transfers before a WAIT have ended, and the previous command has ended. It works until the command has ended, which
    includes memory latency. Commands with the same tag must have the same direction. The convolution engine works from
    the issue of a job, or the end of the previous job, until the end of the job.

    Parameters
    ----------
    run : Run
    words : sequence of int
        The program.
    title : str
    marks : sequence of (int, int, str)
    window : (int, int) or None
        Cycles that are shown; None: all.
    """
    stamps = run.words
    rows = dict.fromkeys((_IN, _OUT, _CONV, _PE, _HANDS, _WAITS))
    rows[_IN], rows[_OUT] = _transfers(run, words)
    rows[_CONV] = _in_turn(
        [stamp.cycle for stamp in stamps if stamp.kind == Kind.CONV], [job.cycle for job in run.jobs]
    )
    rows[_PE] = _instructions(run, words)
    steps = [(a.cycle, b.cycle, _waits(b, words)) for a, b in pairwise(stamps)]
    rows[_HANDS] = [(a, b) for a, b, waits in steps if not waits]
    rows[_WAITS] = [(a, b) for a, b, waits in steps if waits]
    first, last = window or (stamps[0].cycle if stamps else 0, run.cycles)
    return Activity(title, first, last, rows, list(marks))


def _waits(stamp, words):
    """Whether a word waits for engines or a barrier; all other words issue something."""
    if stamp.kind == Kind.BARRIER:
        return PROGRAM_WORDS[Kind.BARRIER].unpack(words[stamp.index])["operation"] == BarrierOp.TRY_WAIT
    return stamp.kind in (Kind.WAIT_ALL, Kind.END)


def _in_turn(begins, ends):
    """Intervals of work that is done one piece after the other."""
    made, before = [], 0
    for begin, end in zip(begins, ends, strict=False):
        made.append((max(begin, before), end))
        before = end
    return made


def _transfers(run, words):
    """Intervals of loads, and of stores."""
    ends = defaultdict(list)
    for end in reversed(run.ends):
        ends[end.tag].append(end.cycle)
    made, before, held = {_IN: [], _OUT: []}, dict.fromkeys((_IN, _OUT), 0), 0
    for stamp in run.words:
        if stamp.kind != Kind.TMAU:
            continue
        command = words[stamp.index] & (1 << WORD_BITS - 4) - 1
        tag = COMMAND.unpack(command)["tag"]
        if not ends[tag]:
            break  # the program stopped
        end = ends[tag].pop()
        way = _way(command)
        if way:
            made[way].append((max(stamp.cycle, before[way], held), end))
            before[way] = end
        elif GROUP.unpack(command)["opcode"] in (Opcode.WAIT, Opcode.WAIT_ALL):
            held = end
    return made[_IN], made[_OUT]


def _way(command):
    """The direction of a command: into shared memory, or out of it; None: neither."""
    opcode = GROUP.unpack(command)["opcode"]
    if opcode == Opcode.COPY_BLOCK:
        return _IN if BLOCK.unpack(command)["destination_space"] == Space.SHARED else _OUT
    if opcode == Opcode.LANES:
        return _OUT if LANES.unpack(command)["destination_layout"] == LaneLayout.GLOBAL else _IN
    return _WAYS.get(opcode)


def _instructions(run, words):
    """Intervals of runs of instructions, from the request for the first one to the end of the last one, and of kernels.

    A kernel has ended when the engine takes the call of the next one, or when a word has waited for the engine.
    """
    made, done, before, called = [], 0, 0, None
    for stamp in run.words:
        if called is not None and (stamp.kind in (Kind.KERNEL, Kind.END) or _waits_for(Engine.PE, stamp, words)):
            made.append((called, stamp.cycle))
            called = None
        if stamp.kind == Kind.PE:
            done += PROGRAM_WORDS[Kind.PE].unpack(words[stamp.index])["count"]
            if done > len(run.performed):
                break  # the program stopped
            made.append((before, run.performed[done - 1]))
        elif stamp.kind == Kind.KERNEL:
            done += PROGRAM_WORDS[Kind.KERNEL].unpack(words[stamp.index])["count"] + 1
            called = stamp.cycle
        before = stamp.cycle
    return made


def _waits_for(engine, stamp, words):
    """Whether a word waits for all work of an engine."""
    if stamp.kind != Kind.WAIT_ALL:
        return False
    engines = PROGRAM_WORDS[Kind.WAIT_ALL].unpack(words[stamp.index])["engines"]
    return not engines or bool(engines & 1 << engine - 1)
