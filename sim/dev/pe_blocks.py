"""The blocks of the processing engine that ``tilewright area`` maps."""

from tilewright.hw.pe.address.address_lanes import AddressLanes
from tilewright.hw.pe.address.bases import Bases
from tilewright.hw.pe.address.block_parts import BlockParts
from tilewright.hw.pe.address.columns import Columns
from tilewright.hw.pe.address.faults import FaultCollector
from tilewright.hw.pe.address.items import Items
from tilewright.hw.pe.address.line_directory import LineDirectory
from tilewright.hw.pe.address.pages import PageTable
from tilewright.hw.pe.address.store_words import StoreWords
from tilewright.hw.pe.address.translate import Translator
from tilewright.hw.pe.compute.broadcast import Broadcaster
from tilewright.hw.pe.compute.factors import FactorFetcher
from tilewright.hw.pe.compute.mac import MacArray
from tilewright.hw.pe.compute.spread import Spread
from tilewright.hw.pe.control import Control
from tilewright.hw.pe.issue.decode import Decoder
from tilewright.hw.pe.issue.issue import Issue
from tilewright.hw.pe.issue.lane_ops import LaneOps
from tilewright.hw.pe.issue.scoreboard import Scoreboard
from tilewright.hw.pe.issue.waits import Waits
from tilewright.hw.pe.memory.line_cache import LineCache
from tilewright.hw.pe.memory.read_return import ReadReturn
from tilewright.hw.pe.memory.reader import Reader
from tilewright.hw.pe.memory.store_merger import StoreMerger
from tilewright.hw.pe.pager import Pager
from tilewright.hw.pe.state.predicates import PredicateFile
from tilewright.hw.pe.state.registers import RegisterFile
from tilewright.hw.pe.state.segments import SegmentTable

__all__ = ["NEIGHBOURS", "blocks", "times"]

#: Threads of the MAC array that is mapped: neighbours that share a product. All threads together take too long.
NEIGHBOURS = 4

_OF_PARAMS = (
    Decoder, Issue, LaneOps, Waits, Scoreboard, SegmentTable, PredicateFile, Items, Bases, StoreWords, Columns,
    BlockParts, LineDirectory, AddressLanes, PageTable, Translator, FaultCollector, Reader, ReadReturn, LineCache,
    StoreMerger, Broadcaster, FactorFetcher, Spread, RegisterFile, MacArray, Control, Pager,
)  # fmt: skip


def blocks(params):
    """Blocks by name, in the order of the data, as functions that make them; the MAC array of four threads."""
    made = {kind.__name__: lambda kind=kind: kind(params) for kind in _OF_PARAMS}
    return made | {"MacArray": lambda: MacArray(params.replace(threads=NEIGHBOURS))}


def times(params):
    """How often the engine has a block, where that is not once."""
    return {"MacArray": params.threads / NEIGHBOURS}
