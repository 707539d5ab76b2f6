"""The memories of a case in a session, before its first command."""

from tilewright.hw.bus.axi4 import Response

from .images import whole_words

__all__ = ["place_memories"]


def place_memories(session, gmem, smem, bus_bytes):
    """Fills the memories of a session; global memory answers with errors from its end on."""
    session.clear()
    gmem = whole_words(gmem, bus_bytes)
    session.global_memory.write(0, gmem)
    for memory in session.shared_memories:
        memory.write(0, smem)
    outside = len(gmem) < session.memory_bytes
    session.configure(errors=(len(gmem), session.memory_bytes - 1, Response.DECERR.value if outside else 0))
