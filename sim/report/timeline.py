"""One transfer, from the command to the barrier, as it passed on the bus."""

from typing import NamedTuple

import numpy as np

from tilewright.golden import TensorMap, tx_bytes
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BARRIER, BarrierOp

__all__ = ["Transfer", "record_transfer"]


class Transfer(NamedTuple):
    """Cycles of everything that happened, counted from the acceptance of the command.

    Attributes
    ----------
    title : str
    events : dict of str to list of int
        In the order of the pipeline.
    """

    title: str
    events: dict


def record_transfer(session):
    """Runs one halo tile by itself, on a cold descriptor cache, and returns its :class:`Transfer`."""
    session.clear()
    array = np.zeros((32, 64, 16), np.uint8)
    tmap = TensorMap.tiled(array, box=(16, 10, 10))
    session.shared_memory.write(0, Barrier(pending=1, expected=1).pack().to_bytes(BARRIER.bytes, "little"))
    session.run(barriers=[(BarrierOp.EXPECT_TX, 0, tx_bytes(tmap)), (BarrierOp.ARRIVE, 0, 1)])
    run = session.run([session.command(tmap, (0, -1, -1), 1024, barrier=0)], trace=True, drain=8)
    trace, start = run.trace, run.commands[0].accepted

    def since(cycles):
        return [int(cycle) - start for cycle in cycles]

    return Transfer(
        f"10 x 10 tile of 16-byte pixels, a row and a column of it outside: {tx_bytes(tmap)} bytes",
        {
            "command accepted": [0],
            "descriptor address (AR)": since(trace.request_cycle[trace.request_id == 1]),
            "descriptor data (R)": since(trace.beat_cycle[trace.beat_id == 1]),
            "data addresses (AR)": since(trace.request_cycle[trace.request_id == 0]),
            "data words (R)": since(trace.beat_cycle[trace.beat_id == 0]),
            "command complete": since([run.commands[0].done]),
            "barrier flips": since(cycle for cycle, _ in run.flips),
        },
    )
