"""Sizes and patterns that everything agrees on, whatever the parameters."""

__all__ = ["BANKS", "CHUNK_BYTES", "LINE_BYTES", "NAN_FILL", "PAGE_BYTES"]

#: Banks of shared memory, each one chunk wide.
BANKS = 8
#: Bytes of a chunk: what a bank holds at one address.
CHUNK_BYTES = 16
#: Bytes of a line of shared memory: the chunks at one address of all banks.
LINE_BYTES = BANKS * CHUNK_BYTES
#: Bytes of a page of global memory, whose edges no burst crosses; windows consist of whole pages.
PAGE_BYTES = 4096
#: Pattern of ``Fill.NAN``: a NaN in every half.
NAN_FILL = 0x7FF7_7FF7
