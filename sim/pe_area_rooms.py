"""The rooms of the processing engine that ``tilewright area`` maps."""

from tilewright.hw.pe.bases import Bases
from tilewright.hw.pe.block_parts import BlockParts
from tilewright.hw.pe.broadcast import Broadcaster
from tilewright.hw.pe.columns import Columns
from tilewright.hw.pe.control import Control
from tilewright.hw.pe.decode import Decoder
from tilewright.hw.pe.factors import FactorFetcher
from tilewright.hw.pe.faults import FaultCollector
from tilewright.hw.pe.issue import Issue
from tilewright.hw.pe.items import Items
from tilewright.hw.pe.landing import Landing
from tilewright.hw.pe.lane_addresses import AddressLanes
from tilewright.hw.pe.lane_ops import LaneOps
from tilewright.hw.pe.line_cache import LineCache
from tilewright.hw.pe.line_directory import LineDirectory
from tilewright.hw.pe.mac import MacArray
from tilewright.hw.pe.pager import Pager
from tilewright.hw.pe.pages import PageTable
from tilewright.hw.pe.predicates import PredicateFile
from tilewright.hw.pe.reader import Reader
from tilewright.hw.pe.registers import RegisterFile
from tilewright.hw.pe.scoreboard import Scoreboard
from tilewright.hw.pe.segments import SegmentTable
from tilewright.hw.pe.spread import Spread
from tilewright.hw.pe.store_words import StoreWords
from tilewright.hw.pe.stores import StoreMerger
from tilewright.hw.pe.translate import Translator
from tilewright.hw.pe.waits import Waits

__all__ = ["NEIGHBOURS", "pe_rooms", "pe_times"]

#: Threads of the MAC array that is mapped: neighbours that share a product. All threads together take too long.
NEIGHBOURS = 4

_OF_PARAMS = (
    Decoder, Issue, LaneOps, Waits, Scoreboard, SegmentTable, PredicateFile, Items, Bases, StoreWords, Columns,
    BlockParts, LineDirectory, AddressLanes, PageTable, Translator, FaultCollector, Reader, Landing, LineCache,
    StoreMerger, Broadcaster, FactorFetcher, Spread, RegisterFile, MacArray, Control, Pager,
)  # fmt: skip


def pe_rooms(params):
    """Rooms by name, in the order of the data, as functions that make them; the MAC array of four threads."""
    made = {kind.__name__: lambda kind=kind: kind(params) for kind in _OF_PARAMS}
    return made | {"MacArray": lambda: MacArray(params.replace(threads=NEIGHBOURS))}


def pe_times(params):
    """How often the engine has a room, where that is not once."""
    return {"MacArray": params.threads / NEIGHBOURS}
