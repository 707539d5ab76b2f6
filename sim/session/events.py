"""What happened in a run, event by event, as the logs of the harness have it."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import COMMAND, Error
from tilewright.spec.cluster import ClusterError
from tilewright.spec.conv import ConvError
from tilewright.spec.core import Kind

from ..harness.drivers import LogRowLayout
from ..hdl.packing import row_bytes, unpack_column

__all__ = [
    "ERRORS",
    "BarrierAnswer",
    "CommandEnd",
    "CommandStamp",
    "JobEnd",
    "Logs",
    "RegisterAnswer",
    "Trace",
    "WordStamp",
    "command_stamps",
    "register_answers",
]


#: Every error that a command may end with, by its code.
ERRORS = {error.value: error for error in (*Error, *ClusterError)}


class Logs:
    """Dumped logs as columns; a log that the design does not have is empty.

    Parameters
    ----------
    entries : dict of str to shape
        The shape of an entry of each log.
    arrays : dict of str to uint8 array
        Rows of the logs that are not empty, by the name of the array, ``…_log``.
    """

    def __init__(self, entries, arrays):
        self._rows = {name: LogRowLayout(shape) for name, shape in entries.items()}
        self._arrays = arrays

    def cycles(self, name):
        """When each entry was made."""
        return self._column(name, "cycle")

    def field(self, name, *path):
        """One field of each entry, or all of it."""
        return self._column(name, "entry", *path)

    def stamped(self, name, *fields):
        """The cycle and the fields of each entry, as tuples of int."""
        columns = [self.cycles(name), *(self.field(name, field) for field in fields)]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _column(self, name, *path):
        if name not in self._rows:
            return np.zeros(0, np.uint8)
        row = self._rows[name]
        rows = self._arrays.get(f"{name}_log", np.zeros((0, row_bytes(row)), np.uint8))
        return unpack_column(row, rows, *path)


class CommandStamp(NamedTuple):
    """One command. Cycles count from the start of the run; None where it did not come to that."""

    tag: int
    accepted: int | None
    done: int | None
    error: Error | ClusterError | None


class CommandEnd(NamedTuple):
    """When a command of the access unit ended, its tag, and its error."""

    cycle: int
    tag: int
    error: int


class BarrierAnswer(NamedTuple):
    """Final answer to one barrier operation."""

    done: bool
    error: bool
    cycle: int


class RegisterAnswer(NamedTuple):
    """Answer to one register access; ``response`` is RRESP or BRESP."""

    data: int
    response: int
    cycle: int


class JobEnd(NamedTuple):
    """How a job of the convolution engine ended: cycle, error, number of the field, tag."""

    cycle: int
    code: ConvError
    field: int
    tag: int


class WordStamp(NamedTuple):
    """When a word of a program was carried out: its engine took it, or its wait was over. Of a job, the last word."""

    cycle: int
    kind: Kind
    index: int


class Trace(NamedTuple):
    """What passed on the bus: of each channel, arrays in order. IDs of reads are those of ``READ_IDS``."""

    request_cycle: np.ndarray
    request_id: np.ndarray
    request_address: np.ndarray
    request_beats: np.ndarray
    beat_cycle: np.ndarray
    beat_id: np.ndarray
    beat_last: np.ndarray
    write_request_cycle: np.ndarray
    write_request_id: np.ndarray
    write_request_address: np.ndarray
    write_request_beats: np.ndarray
    write_beat_cycle: np.ndarray
    write_beat_last: np.ndarray

    @classmethod
    def collect(cls, logs):
        """Makes one from ``Logs``."""
        columns = {}
        for way in ("", "write_"):
            columns |= {
                f"{way}request_cycle": logs.cycles(f"{way}requests"),
                f"{way}request_id": logs.field(f"{way}requests", "id"),
                f"{way}request_address": logs.field(f"{way}requests", "address"),
                f"{way}request_beats": logs.field(f"{way}requests", "length") + 1,
                f"{way}beat_cycle": logs.cycles(f"{way}beats"),
            }
        return cls(
            **columns,
            beat_id=logs.field("beats", "id"),
            beat_last=logs.field("beats", "last"),
            write_beat_last=logs.field("write_beats"),
        )


def register_answers(logs, name):
    """A :class:`RegisterAnswer` for each entry of a log of registers."""
    return [RegisterAnswer(word, response, cycle) for cycle, word, response in logs.stamped(name, "data", "response")]


def command_stamps(logs, rows, core):
    """A :class:`CommandStamp` for each command of ``rows``, in the order of issue."""
    tags = [COMMAND.unpack(row["item"])["tag"] for row in rows]
    accepted = logs.cycles(f"accepted{core}").tolist()
    ends = logs.stamped(f"commands{core}", "error")
    by_tag = dict(zip(logs.field(f"commands{core}", "tag").tolist(), ends, strict=True))
    stamps = []
    for index, tag in enumerate(tags):
        done, code = by_tag.get(tag, (None, None))
        begun = accepted[index] if index < len(accepted) else None
        stamps.append(CommandStamp(tag, begun, done, None if code is None else ERRORS[code]))
    return stamps
