"""Replay on a GPU of compute capability 9.0 or higher: its tensor mover runs the case (docs/silicon.md).

Two parts of a result are golden's, because silicon does not report them: ``tx_bytes`` of commands that do not end at a
barrier (stores, reductions, copies to global memory), and the broken rule of a map that both the driver and golden
refuse. Everything else is silicon's.
"""

from contextlib import contextmanager

from tilewright.sim.replay.golden import transfer_outcome

from .packing import Ending, Status, counted_bytes, issues
from .program import open_program
from .support import why_not as why_not_on_silicon

__all__ = ["hardware", "open_backend", "outcome_of", "why_not"]


def hardware(case, args):
    """None: golden with 64 address bits and all features."""


def why_not(case, args):
    """Why a case cannot run on silicon, as a sentence, or None."""
    return why_not_on_silicon(case)


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
