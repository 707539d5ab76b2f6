"""Ports of the TMAU that consist of several streams or signals."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Port
from ..smem.layouts import RefusalLayout
from ..smem.signatures import BarrierEventSignature
from .jobs import PixelWalkLayout, WalkLayout
from .layouts import DoneLayout, ErrorLayout, EventsLayout, TransferLayout, WindowsLayout, all_windows

__all__ = ["ControlSignature", "DeliveryControlSignature", "DoneSignature", "IssueSignature", "QueueStateSignature"]


class DoneSignature(Port):
    """The end of a command, as a processor sees it."""

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),  # Strobe. The barrier of a load flips in the next cycle or later.
                "tag": Out(16),  # Tag of the command.
                "error": Out(8),  # Its Error, 0 for success.
            }
        )


class ControlSignature(Port):
    """Connection between the data path and the registers, as the data path sees it."""

    def __init__(self, params):
        cluster = {"delivery": Out(DeliveryControlSignature(params))} if params.cores > 1 else {}
        # The windows of each processor's commands; a unit without them confines commands by ``windows``.
        processors = {"processor_windows": In(all_windows(params))} if params.confines_apart else {}
        super().__init__(
            {
                "done": Out(DoneLayout(params)),  # Strobe for each command that ends, after its last write.
                "events": Out(EventsLayout()),
                "refused": Out(BarrierEventSignature(params.smem)),  # Strobe: a barrier operation was refused.
                "queue_level": Out(range(params.queue_depth + 1)),  # Commands in the queue.
                "idle": Out(1),  # No command is in progress.
                "windows": In(WindowsLayout(params)),  # Of the unit: they confine accesses by other cores, too.
                "invalidate_descriptors": In(1),  # Strobe.
                **processors,
                **cluster,
            }
        )


class DeliveryControlSignature(Port):
    """Connection between the network of a cluster and the registers of a core, as the data path sees it."""

    def __init__(self, params):
        super().__init__(
            {
                "number": Out(4),  # Number of the core.
                "refusal": Out(RefusalLayout()),  # Strobe: an access by another core was refused here.
                # Bytes of a transfer that was completed here in this cycle, otherwise 0.
                "received": Out(params.smem.addr_width + 1),
                "accepts": In(params.cores),  # Mask of the cores that may write here.
                "stop": In(1),  # No command is accepted, and commands that have not begun are refused.
            }
        )


class IssueSignature(Port):
    """Connection between the front and the walkers and paths, as the front sees it."""

    def __init__(self, params):
        super().__init__(
            {
                "walks": Out(stream.Signature(WalkLayout(params))),
                "pixel_walks": Out(stream.Signature(PixelWalkLayout(params))),
                # The walker is walking: from the cycle after it took a walk until its last run has left.
                "tile_busy": In(1),
                "pixel_busy": In(1),
                "load_transfers": Out(stream.Signature(TransferLayout(params))),
                "store_transfers": Out(stream.Signature(TransferLayout(params))),
                # Strobe: a transfer that is not quiet is complete.
                "load_completed": In(1),
                "store_completed": In(1),
                "finished": Out(stream.Signature(ErrorLayout(params))),  # Commands that end in the front.
            }
        )


class QueueStateSignature(Port):
    """State of a queue of ``depth`` items, for a block that reserves entries in it."""

    def __init__(self, depth):
        super().__init__(
            {
                "level": Out(range(depth + 1)),  # Items in the queue.
                "popped": Out(1),  # Strobe: an item leaves.
            }
        )
