"""Detection of a run in which nothing can happen any more, and what it waits for."""

from contextlib import suppress

from tilewright.golden.core.program import KIND_LSB
from tilewright.golden.smem import Barrier
from tilewright.spec import BarrierOp
from tilewright.spec.core import PROGRAM_WORDS, WORD_BYTES, Kind
from tilewright.spec.pe import INSTRUCTIONS, Operation

__all__ = ["STILL_CYCLES", "Stillness", "waits_of_ports", "waits_of_program"]

#: Cycles after which nothing can happen any more if nothing has: no command, no instruction and no answer of memory
#: takes as long. A job of the convolution engine may, and is not counted.
STILL_CYCLES = 100_000
#: Cycles in which a processor has read some registers.
_PEEK = 5000
_OPCODE = INSTRUCTIONS[Operation.BAR_WAIT]["opcode"]
_READ = ("word", "program_lo", "program_hi", "status")


class Stillness:
    """Whether a run stands still, by the counts of everything that its harness logs."""

    def __init__(self):
        self._counts, self._since = None, 0

    def lasts(self, statuses, cycles):
        """Whether nothing has happened for so long, ``cycles`` after the start, that nothing can any more."""
        counts = {name: value for name, value in statuses.items() if name != "cycles"}
        if counts != self._counts or _jobs_under_way(statuses):
            self._counts, self._since = counts, cycles
        return cycles - self._since >= STILL_CYCLES


def _jobs_under_way(statuses):
    """Whether a convolution engine has a job."""
    queues = (name.removesuffix("_count") for name in statuses if name.startswith("queued") and name.endswith("_count"))
    return any(statuses[f"{queue}_count"] > statuses[f"{queue.replace('queued', 'jobs')}_done"] for queue in queues)


def waits_of_ports(session, scripts, statuses):
    """What each port waits for whose script is not complete, as sentences."""
    for port, rows in scripts.items():
        done = statuses[f"{port}_done"]
        if done >= len(rows):
            continue
        name = port.rstrip("0123456789")
        memory = session.shared_memories[int(port[len(name) :] or 0)]
        item, waits = rows[done]["item"], ""
        if name == "barriers" and item["request"]["op"] == BarrierOp.TRY_WAIT:
            waits = _barrier(memory, item["request"]["address"], item["request"]["value"])
        elif (
            name == "instructions"
            and _OPCODE.decode(item >> _OPCODE.lsb & (1 << _OPCODE.width) - 1) == Operation.BAR_WAIT
        ):
            fields = INSTRUCTIONS[Operation.BAR_WAIT].unpack(item)
            waits = _barrier(memory, fields["imm"], fields["parity"])
        yield f"{port}[{done}] waits for {waits}" if waits else f"{port}[{done}] of {len(rows)} is not complete"


def waits_of_program(session, peek, registers, suffix=""):
    """What the program of a core waits for, as a sentence; None if none runs.

    Parameters
    ----------
    session : Session
    peek : callable
        Runs scripts without a reset, up to a limit of cycles; returns the logs.
    registers : RegisterMap
    suffix : str
        Of the ports of the core.
    """
    rows = registers.rows(("program", name) for name in _READ)
    data = [int(word) for word in peek({f"registers{suffix}": rows}, _PEEK).field(f"registers{suffix}", "data")]
    if len(data) < len(rows):
        return "the processor's registers do not answer"
    index, low, high, status = data
    if status & 1:
        return None
    word, where = 0, f"word {index} of the program{f' of core {suffix}' if suffix else ''}"
    with suppress(IndexError):  # a program outside of the memory that is simulated
        word = int.from_bytes(
            session.global_memory.read((low | high << 32) + WORD_BYTES * index, WORD_BYTES).tobytes(), "little"
        )
    kind = word >> KIND_LSB
    if kind == Kind.BARRIER:
        fields = PROGRAM_WORDS[Kind.BARRIER].unpack(word)
        if fields["operation"] == BarrierOp.TRY_WAIT:
            memory = session.shared_memories[int(suffix or 0)]
            return f"{where} waits for {_barrier(memory, fields['barrier'], fields['value'])}"
    name = f" ({Kind(kind).name.lower()})" if kind in set(Kind) else ""
    return f"{where}{name} is not over"


def _barrier(memory, address, parity):
    """A phase of a barrier that is not complete, and what is missing."""
    raw = memory.read(address & ~7 & len(memory) - 1, 8)
    state = Barrier.read(raw, 0)
    waits = f"phase {parity & 1} of the barrier at {address:#x}"
    if not state.expected:
        return f"{waits}, where none has been initialised"
    return f"{waits}, which lacks {state.pending} of {state.expected} arrivals and {state.transactions} bytes"
