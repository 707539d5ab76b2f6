"""Replay on a GPU of compute capability 9.0 or higher: its tensor mover runs the case (docs/silicon.md).

Two parts of a result are golden's, because silicon does not report them: ``tx_bytes`` of commands that do not end at a
barrier (stores, reductions, copies to global memory), and the broken rule of a map that both the driver and golden
refuse. Everything else is silicon's.
"""

from contextlib import contextmanager

from tilewright.sim.replay.cases import ENGINE_KINDS
from tilewright.sim.replay.commands import shared_reach
from tilewright.sim.replay.golden import run_commands, transfer_outcome
from tilewright.spec import Element, Fill, Interleave, Mode, Opcode, Reduction, Space

from .packing import (
    BLOCK_TYPES,
    GRANULE,
    MOST_CORES,
    SHARED_BYTES,
    SHARED_REDUCTIONS,
    Ending,
    Status,
    counted_bytes,
    issues,
)
from .program import open_program

__all__ = ["hardware", "no_counterpart", "open_backend", "outcome_of", "why_not"]


def hardware(case, args):
    """None: golden with 64 address bits and all features."""


@contextmanager
def open_backend(args):
    """A replay backend: yields a callable that accepts cases for which :func:`why_not` returns None."""
    with open_program() as program:
        yield lambda case: outcome_of(case, program.run(case))


def outcome_of(case, reply):
    """The :class:`Outcome` of a case from the ``Reply`` of the program.

    Its error is a sentence if silicon and our rules disagree, or the case did not complete.
    """
    commands = issues(case)
    if reply.status != Status.OK:
        gmem, smem = case.global_contents(), case.smem.contents()
        return transfer_outcome(case, f"failed: {reply.message}", [0] * len(commands), gmem, [smem] * case.cores)
    parts = list(zip(commands, reply.endings, reply.counted, strict=True))
    error = next(filter(None, (_error(*part) for part in parts)), None)
    return transfer_outcome(case, error, [_landed(*part) for part in parts], reply.gmem, reply.smems)


def _error(issue, ending, counted):
    """The golden error of a refusal by both, or another error as text; None if the command was executed."""
    if isinstance(counted, tuple):
        return "counted unevenly"
    if ending == Ending.REFUSED:
        refused = issue.spec.refused
        return refused.name.lower() if refused else "refused by the driver"
    return {Ending.NO_SUCH: "no such instruction", Ending.UNFINISHED: "unfinished"}.get(ending)


def _landed(issue, ending, counted):
    """Bytes at the barrier, or by our rules if no barrier counts them."""
    if isinstance(counted, int):
        return counted
    if ending != Ending.DONE or counted:
        return 0
    return counted_bytes(issue)


_BEYOND = "the TMAU goes beyond silicon with"

#: Commands that silicon does not have.
_COMMANDS = {
    Opcode.LANES: f"{_BEYOND} lanes",
    Opcode.REPLACE: f"{_BEYOND} replace",
    Opcode.INVALIDATE: "silicon has another way to invalidate descriptors",
    Opcode.INVALIDATE_ALL: "silicon has another way to invalidate descriptors",
}

#: Element types that the driver does not have. A map gets a type of the same size, but cannot fill with NaN.
_STRANGE = (Element.S8, Element.S16, Element.F8E4M3, Element.F8E5M2)

_BITS = (Reduction.AND, Reduction.OR, Reduction.XOR)

#: Fields of a map, with the range of the driver's arguments and our records of them.
_RANGES = {
    **dict.fromkeys(("size", "stride"), (0, (1 << 64) - 1)),
    **dict.fromkeys(("box", "traversal", "channels", "pixels"), (0, (1 << 32) - 1)),
    **dict.fromkeys(("lower", "upper"), (-(1 << 31), (1 << 31) - 1)),
}
_MOST_RANK = 5


def why_not(case, args=None):
    """Why a case cannot run on silicon, as a sentence, or None: for items that only the TMAU has, and a few more."""
    return no_counterpart(case) or _only_ours_refuses(case) or next(filter(None, map(_asked, issues(case))), None)


def no_counterpart(case):
    """The same without the subjects of questions: commands that one of the two refuses or executes differently."""
    if case.kind in ENGINE_KINDS:
        return f"silicon has no counterpart of kind {case.kind}"
    if case.windows.global_ or case.windows.shared:
        return f"{_BEYOND} windows"
    if case.processors:
        return f"{_BEYOND} processors that share a unit"
    if case.cores > MOST_CORES:
        return f"silicon has clusters of at most {MOST_CORES} cores, and the case has {case.cores}"
    wrong = next(filter(None, (_wrong_command(issue) for issue in issues(case))), None)
    wrong = wrong or next(filter(None, (_wrong_delivery(issue, case.cores) for issue in issues(case))), None)
    wrong = wrong or next(filter(None, (_wrong_map(name, spec) for name, spec in case.maps.items())), None)
    reach = 0 if wrong else shared_reach(case)
    if reach > SHARED_BYTES:
        return f"it uses {reach} bytes of shared memory, and a GPU has {SHARED_BYTES}"
    return wrong


def _only_ours_refuses(case):
    """Silicon does not check commands: it executes those that we refuse, or fails. The driver refuses maps, however."""
    for number, (issue, error) in enumerate(zip(issues(case), run_commands(case).errors, strict=True)):
        if error and not (issue.spec and issue.spec.refused):
            return f"silicon has no check for the error of command {number}, {error.name.lower()}"
    return None


def _wrong_command(issue):
    if issue.opcode in _COMMANDS:
        return _COMMANDS[issue.opcode]
    if issue.fields.get("fill"):
        return f"{_BEYOND} fill on store"
    return _wrong_block(issue.fields) if issue.opcode == Opcode.COPY_BLOCK else None


def _wrong_delivery(issue, cores):
    """Why silicon, or a job, cannot express the cores that a command names."""
    if issue.source_core is not None:
        return "silicon copies from a core's own shared memory only"
    if issue.multicast is None:
        return None
    if cores == 1:
        return "a core alone ignores which cores receive, and silicon does not"
    if not issue.multicast:
        return "a job has no multicast to nobody"
    if issue.fields.get("source_space") == Space.SHARED:
        if issue.multicast.bit_count() > 1:
            return "silicon copies from shared memory to one core only"
        if issue.multicast >> cores:
            return "a job copies to a core that there is"
    return None


def _asked(issue):
    """Why silicon refuses a legal command, or executes it differently, according to its answers (docs/silicon.md)."""
    fields = issue.fields
    if issue.opcode == Opcode.COPY_BLOCK:
        ours = (fields.get("reduction"), fields.get("element")) == (Reduction.ADD, Element.F32)
        return "silicon does not flush subnormal numbers when it adds blocks of f32" if ours else None
    if not issue.spec or issue.spec.refused:
        return None
    tmap = issue.spec.tmap
    if tmap.interleave == Interleave.NONE:
        if fields["coords"][0] * tmap.element.bytes % GRANULE:
            return f"{_BEYOND} starts inside {GRANULE} bytes (map {issue.map})"
        if issue.opcode in (Opcode.STORE, Opcode.REDUCE) and tmap.size[0] * tmap.element.bytes % GRANULE:
            return f"{_BEYOND} writing up to an edge inside {GRANULE} bytes (map {issue.map})"
    elif tmap.mode == Mode.TILE and tmap.box[0] * tmap.element.bytes % GRANULE:
        return f"{_BEYOND} interleaved boxes whose elements are no multiple of {GRANULE} bytes (map {issue.map})"
    if tmap.element == Element.S64 and fields.get("reduction") in _BITS:
        return f"silicon combines the bits of u64 and not of s64 in a tensor (map {issue.map})"
    return None


def _wrong_block(fields):
    if fields["source_space"] == Space.GLOBAL:
        if fields["destination_space"] == Space.GLOBAL:
            return f"{_BEYOND} copies from global to global memory"
        return "silicon does not reduce from global into shared memory" if "reduction" in fields else None
    op, element = fields.get("reduction"), fields.get("element")
    into, reducible = ("shared", SHARED_REDUCTIONS.get(op)) if fields["destination_space"] else ("global", BLOCK_TYPES)
    return (
        f"a job has no {op.name.lower()} of {element.name.lower()} into {into} memory"
        if op and element not in reducible
        else None
    )


def _wrong_map(name, spec):
    tmap = spec.tmap
    if spec.at is not None:
        return f"map {name} lies at an address, but silicon's is made by the driver"
    for flag in ("unaligned", "gather0"):
        if getattr(tmap, flag):
            return f"{_BEYOND} {flag} (map {name})"
    if tmap.fill == Fill.CONSTANT:
        return f"{_BEYOND} constant fill (map {name})"
    if tmap.fill == Fill.NAN and tmap.element in _STRANGE:
        return f"the driver has no {tmap.element.name.lower()} to fill with NaN (map {name})"
    if tmap.rank > _MOST_RANK:
        return f"jobs have no room for rank {tmap.rank} (map {name})"
    for field, (low, high) in _RANGES.items():
        values = getattr(tmap, field)
        for value in values if isinstance(values, tuple) else (values,):
            if not low <= value <= high:
                return f"the driver's arguments cannot hold {value} as {field} (map {name})"
    return None
