"""Ports of the TMAU that are more than one stream."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Port
from ..smem.layouts import BarrierEventSignature, RefusalLayout
from .jobs import PixelWalkLayout, WalkLayout
from .layouts import DoneLayout, ErrorLayout, EventsLayout, TransferLayout, WindowsLayout, all_windows

__all__ = ["ControlSignature", "DeliveryControlSignature", "DoneSignature", "IssueSignature", "QueueStateSignature"]


class DoneSignature(Port):
    """The end of a command, as a processor sees it.

    Members
    -------
    valid : Out(1)
        Strobe; for a load that landed, its barrier flips in the next cycle at the earliest.
    tag : Out(16)
        Its tag.
    error : Out(8)
        Its Error; 0 if there was none.
    """

    def __init__(self):
        super().__init__({"valid": Out(1), "tag": Out(16), "error": Out(8)})


class ControlSignature(Port):
    """What passes between the data path and the registers, as the data path sees it.

    Members
    -------
    done : Out(DoneLayout)
        Strobe for each command that ends, after its last write.
    events : Out(EventsLayout)
    refused : Out(BarrierEventSignature(params.smem))
        Strobe: a barrier operation was refused.
    queue_level : Out(range(params.queue_depth + 1))
        Commands that wait in the queue.
    idle : Out(1)
        No command is under way.
    windows : In(WindowsLayout)
        Of the unit: what other cores may write and read here.
    processor_windows : In(all_windows(params)) if params.confines_apart
        Of each processor's commands: what they may, which is otherwise the same.
    invalidate_descriptors : In(1)
        Strobe.
    delivery : Out(DeliveryControlSignature(params)) if params.cores > 1
    """

    def __init__(self, params):
        cluster = {"delivery": Out(DeliveryControlSignature(params))} if params.cores > 1 else {}
        apart = {"processor_windows": In(all_windows(params))} if params.confines_apart else {}
        super().__init__(
            {
                "done": Out(DoneLayout(params)),
                "events": Out(EventsLayout()),
                "refused": Out(BarrierEventSignature(params.smem)),
                "queue_level": Out(range(params.queue_depth + 1)),
                "idle": Out(1),
                "windows": In(WindowsLayout(params)),
                "invalidate_descriptors": In(1),
                **apart,
                **cluster,
            }
        )


class DeliveryControlSignature(Port):
    """What passes between the network of a cluster and the registers of a core, as the data path sees it.

    Members
    -------
    number : Out(4)
        Of the core.
    refusal : Out(RefusalLayout())
        Strobe: something of another core was refused here.
    received : Out(params.smem.addr_width + 1)
        Bytes of a transfer that has landed here; 0 in other cycles.
    accepts : In(params.cores)
        Mask of the cores that may write here.
    stop : In(1)
        No command is taken, and those that have not begun are refused.
    """

    def __init__(self, params):
        super().__init__(
            {
                "number": Out(4),
                "refusal": Out(RefusalLayout()),
                "received": Out(params.smem.addr_width + 1),
                "accepts": In(params.cores),
                "stop": In(1),
            }
        )


class IssueSignature(Port):
    """What leaves the front for walkers and paths, and what it is told of them, as the front sees it.

    Members
    -------
    walks : Out(stream of WalkLayout)
    pixel_walks : Out(stream of PixelWalkLayout)
    tile_busy, pixel_busy : In(1)
        The walker is walking; from the cycle after it took a walk until it has handed out the last run.
    load_transfers, store_transfers : Out(stream of TransferLayout)
    load_completed, store_completed : In(1)
        Strobe: a transfer that is not quiet is complete.
    finished : Out(stream of ErrorLayout)
        Commands that end in the front.
    """

    def __init__(self, params):
        super().__init__(
            {
                "walks": Out(stream.Signature(WalkLayout(params))),
                "pixel_walks": Out(stream.Signature(PixelWalkLayout(params))),
                "tile_busy": In(1),
                "pixel_busy": In(1),
                "load_transfers": Out(stream.Signature(TransferLayout(params))),
                "store_transfers": Out(stream.Signature(TransferLayout(params))),
                "load_completed": In(1),
                "store_completed": In(1),
                "finished": Out(stream.Signature(ErrorLayout(params))),
            }
        )


class QueueStateSignature(Port):
    """How full a queue is, for a block that reserves places in it.

    Parameters
    ----------
    depth : int
        Of the queue.

    Members
    -------
    level : Out(range(depth + 1))
        Items that wait.
    taken : Out(1)
        Strobe: one of them is taken.
    """

    def __init__(self, depth):
        super().__init__({"level": Out(range(depth + 1)), "taken": Out(1)})
