"""The timeline of one transfer, from the command to the barrier: its events on the bus."""

from typing import NamedTuple

import numpy as np

from tilewright.golden import TensorMap, tx_bytes
from tilewright.golden.arguments import shown
from tilewright.golden.smem import Barrier
from tilewright.spec import BARRIER, BarrierOp

from ..harness.records import READ_IDS
from . import charts

__all__ = ["Transfer", "record_transfer", "timeline"]


class Transfer(NamedTuple):
    """Cycles of all events, counted from the acceptance of the command.

    Attributes
    ----------
    title : str
    events : dict of str to list of int
        Cycles by name of the event, in the order of the pipeline.
    """

    title: str
    events: dict

    def _repr_svg_(self):
        return self.svg()

    def svg(self):
        """The events over cycles, as SVG text."""
        return charts.timeline(self)


def timeline(run, index=0, title="One transfer"):
    """The :class:`Transfer` of a run; a notebook shows it as a picture.

    Parameters
    ----------
    run : Run
        A run with ``trace=True``. All transfers on the bus are attributed to this command.
    index : int
        Index of the command whose acceptance is cycle 0.
    title : str
    """
    if not hasattr(run, "traced"):
        raise TypeError(f"run must be a Run of a Session, not {shown(run)}")
    trace = run.traced()
    if not 0 <= index < len(run.commands) or run.commands[index].accepted is None:
        raise ValueError(f"index must be that of one of the {len(run.commands)} commands, accepted, not {index}")
    start, done = run.commands[index].accepted, run.commands[index].done

    def since(cycles):
        return [int(cycle) - start for cycle in cycles if cycle >= start]

    events = {
        "command accepted": [0],
        "descriptor address (AR)": since(trace.request_cycle[trace.request_id == READ_IDS["descriptor"]]),
        "descriptor data (R)": since(trace.beat_cycle[trace.beat_id == READ_IDS["descriptor"]]),
        "data addresses (AR)": since(trace.request_cycle[trace.request_id == READ_IDS["data"]]),
        "data words (R)": since(trace.beat_cycle[trace.beat_id == READ_IDS["data"]]),
        "old words (R)": since(trace.beat_cycle[trace.beat_id == READ_IDS["reducer"]]),
        "write addresses (AW)": since(trace.write_request_cycle),
        "written words (W)": since(trace.write_beat_cycle),
        "command complete": since([] if done is None else [done]),
        "barrier flips": since(cycle for cycle, _ in run.flips),
    }
    return Transfer(title, {name: cycles for name, cycles in events.items() if cycles})


def record_transfer(session):
    """Runs one halo tile by itself, on a cold descriptor cache, and returns its :class:`Transfer`."""
    session.clear()
    array = np.zeros((32, 64, 16), np.uint8)
    tmap = TensorMap.tiled(array, box=(16, 10, 10))
    session.shared_memory.write(0, Barrier(pending=1, expected=1).pack().to_bytes(BARRIER.bytes, "little"))
    session.run(barriers=[(BarrierOp.EXPECT_TX, 0, tx_bytes(tmap)), (BarrierOp.ARRIVE, 0, 1)])
    run = session.run([session.command(tmap, (0, -1, -1), 1024, barrier=0)], trace=True, drain=8)
    return timeline(run, 0, f"10 x 10 tile of 16-byte pixels, a row and a column of it outside: {tx_bytes(tmap)} bytes")
