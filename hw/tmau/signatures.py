"""Ports of the TMAU that are more than one stream."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Port
from ..smem.layouts import BarrierEventSignature, RefusalLayout
from .jobs import PixelWalkLayout, WalkLayout
from .layouts import DoneLayout, ErrorLayout, EventsLayout, TransferLayout, WindowsLayout, all_windows

__all__ = ["ControlSignature", "DeliveryControlSignature", "DoneSignature", "IssueSignature", "QueueStateSignature"]


class DoneSignature(Port):
    """The end of a command, as a processor sees it."""

    def __init__(self):
        # Its Error; 0 if there was none.
        # Its tag.
        # Strobe; for a load that landed, its barrier flips in the next cycle at the earliest.
        super().__init__({"valid": Out(1), "tag": Out(16), "error": Out(8)})


class ControlSignature(Port):
    """What passes between the data path and the registers, as the data path sees it."""

    def __init__(self, params):
        cluster = {"delivery": Out(DeliveryControlSignature(params))} if params.cores > 1 else {}
        # Of each processor's commands: what they may, which is otherwise the same.
        apart = {"processor_windows": In(all_windows(params))} if params.confines_apart else {}
        super().__init__(
            {
                # Strobe for each command that ends, after its last write.
                "done": Out(DoneLayout(params)),
                "events": Out(EventsLayout()),
                # Strobe: a barrier operation was refused.
                "refused": Out(BarrierEventSignature(params.smem)),
                # Commands that wait in the queue.
                "queue_level": Out(range(params.queue_depth + 1)),
                # No command is under way.
                "idle": Out(1),
                # Of the unit: what other cores may write and read here.
                "windows": In(WindowsLayout(params)),
                # Strobe.
                "invalidate_descriptors": In(1),
                **apart,
                **cluster,
            }
        )


class DeliveryControlSignature(Port):
    """What passes between the network of a cluster and the registers of a core, as the data path sees it."""

    def __init__(self, params):
        super().__init__(
            {
                # Of the core.
                "number": Out(4),
                # Strobe: something of another core was refused here.
                "refusal": Out(RefusalLayout()),
                # Bytes of a transfer that has landed here; 0 in other cycles.
                "received": Out(params.smem.addr_width + 1),
                # Mask of the cores that may write here.
                "accepts": In(params.cores),
                # No command is taken, and those that have not begun are refused.
                "stop": In(1),
            }
        )


class IssueSignature(Port):
    """What leaves the front for walkers and paths, and what it is told of them, as the front sees it."""

    def __init__(self, params):
        super().__init__(
            {
                "walks": Out(stream.Signature(WalkLayout(params))),
                "pixel_walks": Out(stream.Signature(PixelWalkLayout(params))),
                # The walker is walking; from the cycle after it took a walk until it has handed out the last run.
                "tile_busy": In(1),
                "pixel_busy": In(1),
                "load_transfers": Out(stream.Signature(TransferLayout(params))),
                "store_transfers": Out(stream.Signature(TransferLayout(params))),
                # Strobe: a transfer that is not quiet is complete.
                "load_completed": In(1),
                "store_completed": In(1),
                # Commands that end in the front.
                "finished": Out(stream.Signature(ErrorLayout(params))),
            }
        )


class QueueStateSignature(Port):
    """How full a queue is, for a block that reserves places in it.

    Parameters
    ----------
    depth : int
        Of the queue.
    """

    def __init__(self, depth):
        # Strobe: one of them is taken.
        # Items that wait.
        super().__init__({"level": Out(range(depth + 1)), "taken": Out(1)})
