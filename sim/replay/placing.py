"""The memories of a case of the TMAU in a session, before its first command."""

from tilewright.hw.bus.axi4 import Response

__all__ = ["place_memories"]


def place_memories(case, session, bus_bytes):
    """Fills the memories of a session; global memory answers with errors from the end of the case's on."""
    session.clear()
    session.global_memory.write(0, case.global_contents())
    for memory in session.shared_memories:
        memory.write(0, case.smem.contents())
    end = -(-case.gmem.size // bus_bytes) * bus_bytes
    outside = end < session.memory_bytes
    session.configure(errors=(end, session.memory_bytes - 1, Response.DECERR.value if outside else 0))
