"""Payloads between the blocks that make addresses."""

from amaranth import unsigned
from amaranth.lib import data

from ..layouts import NUMBER_BITS, access_fields
from ..params import LANES

__all__ = ["LinearLayout"]


class LinearLayout(data.StructLayout):
    """An access before its pages are looked up."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,  # has an element inside
                "entry": unsigned(params.page_width),  # page entry, if paged
                "offset": unsigned(20),  # byte offset in the page, of the unit, the word, or the row's chunk
                "keep": unsigned(8),
                "code": unsigned(4),  # PeError that is known already: PRODUCT, ALIGNMENT
            }
        )
        super().__init__(
            {
                "flush": 1,  # forget translations first
                "lanes": data.ArrayLayout(lane, LANES),
                "paged": 1,
                "swizzle": 2,
                "base": unsigned(28),  # chunk address of the page, if not paged
                "number": unsigned(NUMBER_BITS),
                "thread": unsigned(params.thread_width),  # of lane 0 (LOAD, STORE) or column 0 (COLUMNS, PICK)
                "fault_register": unsigned(16),  # for the record of errors of threads
                **access_fields(params),
            }
        )
