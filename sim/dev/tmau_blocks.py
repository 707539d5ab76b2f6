"""The blocks of the TMAU that ``tilewright area`` maps, and which of them only reductions need."""

from tilewright.hw.bus.axi4_port import ReadPort
from tilewright.hw.bus.burst import BurstSplitter
from tilewright.hw.bus.read_mux import Axi4ReadMux
from tilewright.hw.bus.write_guard import WriteGuard
from tilewright.hw.bus.write_port import WritePort
from tilewright.hw.reduce.unit import Reducer
from tilewright.hw.tmau.control import Control
from tilewright.hw.tmau.descriptor.cache import DescriptorCache
from tilewright.hw.tmau.front.dispatch import Dispatch
from tilewright.hw.tmau.front.exchange import Exchange
from tilewright.hw.tmau.front.finish import Finisher
from tilewright.hw.tmau.front.groups import GroupTracker
from tilewright.hw.tmau.load.fill import LineAssembler
from tilewright.hw.tmau.load.realign import Realigner
from tilewright.hw.tmau.load.shared_reduce import SharedReducer
from tilewright.hw.tmau.load.steps import StepGenerator
from tilewright.hw.tmau.load.swizzle import Swizzler
from tilewright.hw.tmau.load.tracker import ResponseTracker
from tilewright.hw.tmau.setup.block import BlockSetup
from tilewright.hw.tmau.setup.lanes import LaneSetup
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.hw.tmau.store.bursts import WriteGenerator
from tilewright.hw.tmau.store.finish import StoreFinisher
from tilewright.hw.tmau.store.line_fetch import LineFetcher
from tilewright.hw.tmau.store.tracker import StoreTracker
from tilewright.hw.tmau.store.word_assembler import WordAssembler
from tilewright.hw.tmau.store.word_steps import WordStepGenerator
from tilewright.hw.tmau.walk.pixel import PixelWalker
from tilewright.hw.tmau.walk.requests import RequestGenerator
from tilewright.hw.tmau.walk.tile import TileWalker

__all__ = ["REDUCTIONS", "blocks"]

#: Blocks that only reductions need.
REDUCTIONS = ("Reducer", "SharedReducer")

_OF_PARAMS = (
    DescriptorCache, Setup, BlockSetup, LaneSetup, GroupTracker, Exchange, Dispatch, TileWalker, PixelWalker,
    RequestGenerator, ResponseTracker, StepGenerator, Realigner, LineAssembler, Swizzler, SharedReducer, StoreTracker,
    WriteGenerator, WordStepGenerator, LineFetcher, WordAssembler, StoreFinisher, Finisher, Control,
)  # fmt: skip


def blocks(params):
    """Blocks of the data path by name, in the order of the data, as functions that make them."""
    bus = {"addr_width": params.addr_width, "bus_bytes": params.bus_bytes}
    flight = {"max_outstanding": params.max_outstanding}
    made = {kind.__name__: lambda kind=kind: kind(params) for kind in _OF_PARAMS}
    return made | {
        "BurstSplitter": lambda: BurstSplitter(
            word_width=params.word_width,
            count_width=RequestGenerator(params).count_width,
            bus_bytes=params.bus_bytes,
            max_burst=params.max_burst,
        ),
        "ReadPort": lambda: ReadPort(**bus, **flight, max_burst=params.max_burst),
        "Axi4ReadMux": lambda: Axi4ReadMux(params.addr_width, params.bus_width),
        "Reducer": lambda: Reducer(**bus, max_burst=params.max_burst),
        "WriteGuard": lambda: WriteGuard(**bus),
        "WritePort": lambda: WritePort(**bus, **flight, id_width=2),
    }
