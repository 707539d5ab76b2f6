"""What came out of one run of a session with a convolution engine."""

from dataclasses import dataclass
from typing import NamedTuple

from tilewright.golden.spec.conv.errors import ConvError

from .run import Run

__all__ = ["ConvRun", "JobEnd"]


class JobEnd(NamedTuple):
    """How a job of the convolution engine ended: cycle, error, number of the field, tag."""

    cycle: int
    code: ConvError
    field: int
    tag: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ConvRun(Run):
    """What came out of one run of a ``ConvSession``.

    Attributes
    ----------
    finished, cycles, barriers, registers, irq
        As of every run.
    jobs : list of JobEnd
        In order.
    accepted : list of int
        In which cycle each job was taken into the queue.
    """

    jobs: list
    accepted: list

    @classmethod
    def collect(cls, statuses, logs):
        """The same."""
        ends = logs.stamped("jobs", "code", "field", "tag")
        jobs = [JobEnd(cycle, ConvError(code), field, tag) for cycle, code, field, tag in ends]
        return super().collect(statuses, logs, jobs=jobs, accepted=logs.cycles("accepted").tolist())

    def _facts(self):
        yield f"{len(self.jobs)} jobs, {sum(job.code != ConvError.NONE for job in self.jobs)} errors"
