"""Random batches on hardware and on the golden model: every difference, and the smallest batch that still shows it."""

from dataclasses import replace

import numpy as np

from tilewright.golden import Machine, Memory
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.golden.tmau.machine import command_word
from tilewright.golden.tmau.tile import footprint, walk
from tilewright.sim.replay.golden import case_text
from tilewright.sim.session.golden_options import machine_options
from tilewright.sim.session.memory import DESCRIPTORS
from tilewright.spec import BANKS, BARRIER, CHUNK_BYTES, COMMAND, DESCRIPTOR, FORMATS, BarrierOp, Opcode
from tilewright.spec.tmau_registers import TMAU_REGISTERS

from ..random.batches import BARRIERS, TENSOR_BYTES
from .differences import bus_differences, ending_differences, memory_differences, record_differences, smallest, unequal

__all__ = ["RandomRun", "expected_words", "requested_words"]

_GMEM_SEED, _SMEM_SEED = 1, 2
_OFFSETS = {register.name: register.offset for register in TMAU_REGISTERS}
_READ_AT_END = ("error", "error_address_lo", "error_address_hi", "error_count", "irq_status", "commands", "bytes",
                "descriptor_hits", "descriptor_misses")  # fmt: skip
_CLEAR_ALL = 0b101  # of the register control: counters and error record
_ERROR, _DONE = 0b01, 0b10  # bits of irq_status


class RandomRun:
    """Runs batches on a session, whose memories it fills.

    Parameters
    ----------
    session : Session
        Of a core with an access unit alone.

    Attributes
    ----------
    loads : int
        Commands compared so far.
    hits, misses : int
        Of the descriptor cache.
    """

    def __init__(self, session):
        self._session = session
        self._params = session.params.tmau
        size = session.memory_bytes + DESCRIPTORS * DESCRIPTOR.bytes
        #: Global memory, as golden sees it.
        self._contents = np.zeros(size, np.uint8)
        self._contents[:TENSOR_BYTES] = mix_pattern(TENSOR_BYTES, _GMEM_SEED)
        session.global_memory.write(0, self._contents[:TENSOR_BYTES])
        self._sentinel = mix_pattern(self._params.smem.size_bytes, _SMEM_SEED)
        self.loads = self.hits = self.misses = 0

    def run(self, batch):
        """Runs a batch; returns one sentence for each difference from golden, so none if all is well."""
        session = self._session
        if batch.fresh:
            session.clear(batch.base)
        batch.configure(session)
        commands = [self._command(batch, number, load) for number, load in enumerate(batch.loads)]
        before = self._shared_memory(batch)
        session.shared_memory.write(0, before)
        params = self._params
        machine = Machine(Memory(self._contents, base=batch.base), before.copy(), **machine_options(params))
        landed = [machine.execute(command_word(**command)) for command in commands]
        operations = self._operations(batch, landed)
        for operation in operations:
            machine.barrier(*operation[:3])
        reads = self._reads(batch, landed)
        run = session.run(
            commands,
            barriers=operations,
            reads=reads,
            registers=[*((_OFFSETS[name],) for name in _READ_AT_END), (_OFFSETS["irq_status"], _ERROR | _DONE),
                       (_OFFSETS["control"], _CLEAR_ALL)],
            after={"reads": ["barriers"], "registers": ["commands", "barriers", "reads"]},
            shared=True,
            trace=True,
        )  # fmt: skip
        self.loads += len(commands)
        return [
            *bus_differences(run),
            *ending_differences(run, machine),
            *memory_differences("shared memory", run.shared, machine.smem, before),
            *self._register_differences(run, machine, batch, landed),
            *_barrier_differences(run, operations),
            *self._request_differences(run, batch, landed),
            *_read_differences(run, reads, machine.smem),
        ]

    def reduce(self, batch):
        """The shortest part of a failing batch that fails by itself from a reset on, or None if it does not."""
        loads = smallest(batch.loads, lambda loads: self.run(replace(batch, fresh=True, loads=loads)))
        return loads and replace(batch, fresh=True, loads=loads)

    def report(self, batch):
        """Failures of a batch that was run: the differences of its smallest part, and a replay case."""
        smallest = self.reduce(batch)
        if smallest is None:
            return f"{batch.name} fails only after the batches before it"
        where = f"{batch}; {self._params}"
        case = case_text(
            "found_by_random",
            f"{where}; {smallest.loads}",
            [(load.tmap, load.coords, load.smem) for load in smallest.loads],
            gmem={"bytes": TENSOR_BYTES, "init": {"mix": _GMEM_SEED}},
            smem={"bytes": self._params.smem.size_bytes, "init": {"mix": _SMEM_SEED}},
        )
        return "\n".join([where, *self.run(smallest), *map(str, smallest.loads), case])

    def _command(self, batch, number, load):
        """Fields of a command, whose descriptor is placed in both memories."""
        tmap = batch.moved(load.tmap)
        address = self._session.descriptor(tmap)
        place = address - batch.base
        self._contents[place : place + DESCRIPTOR.bytes] = np.frombuffer(tmap.pack(), np.uint8)
        fields = {"opcode": load.opcode, "descriptor": address + load.skew, "coords": load.coords, "smem": load.smem}
        signal = {} if load.barrier is None else {"signal": 1, "barrier": load.barrier}
        # Tags differ, and all of their bits are used.
        fields |= signal | {"tag": (40503 * number + batch.seed) % (1 << 16)}
        known = {field.name for field in FORMATS.get(load.opcode, COMMAND).fields}
        return {name: value for name, value in fields.items() if name in known}

    def _shared_memory(self, batch):
        """Contents before the batch: a pattern, and barriers that wait for one arrival, half of them in phase 1."""
        contents = self._sentinel.copy()
        for number in range(BARRIERS):
            place = batch.barrier_line + BARRIER.bytes * number
            Barrier(pending=1, expected=number + 1, phase=number & 1).write(contents, place)
        return contents

    @staticmethod
    def _operations(batch, landed):
        """Operations of a processor on the barriers while the commands run, until all bytes have landed."""
        totals = {}
        for load, count in zip(batch.loads, landed, strict=True):
            if load.barrier is not None and count:
                totals[load.barrier] = totals.get(load.barrier, 0) + count
        return [
            *((BarrierOp.EXPECT_TX, barrier, total) for barrier, total in totals.items()),
            *((BarrierOp.ARRIVE, barrier, 1) for barrier in totals),
            *((BarrierOp.TRY_WAIT, barrier, barrier // BARRIER.bytes & 1, True) for barrier in totals),
        ]

    @staticmethod
    def _reads(batch, landed):
        """Addresses, one a lane, in boxes that are known to have landed once the barriers are through."""
        boxes = [
            (load.smem, load.smem + footprint(load.tmap), load.barrier is not None)
            for load, count in zip(batch.loads, landed, strict=True)
            if count
        ]
        reads = []
        for number, (first, after, signals) in enumerate(boxes):
            others = boxes[:number] + boxes[number + 1 :]
            if signals and all(after <= low or high <= first for low, high, _ in others):
                step = max((after - first) // CHUNK_BYTES // BANKS, 1) * CHUNK_BYTES
                reads.append(list(range(first, after, step))[-BANKS:])
        return reads

    def _register_differences(self, run, machine, batch, landed):
        words = {name: answer.data for name, answer in zip(_READ_AT_END, run.registers, strict=False)}
        errors, bytes_landed = machine.errors, sum(count or 0 for count in landed)
        record = [words[name] for name in ("error", "error_address_lo", "error_address_hi")]
        looked_up = sum(load.opcode == Opcode.LOAD and not load.skew for load in batch.loads)
        self.hits += words["descriptor_hits"]
        self.misses += words["descriptor_misses"]
        status = (_ERROR if errors else 0) | (_DONE if len(errors) < len(landed) else 0)
        pairs = {
            "error_count": (words["error_count"], len(errors)),
            "irq_status": (words["irq_status"], status),
            "commands": (words["commands"], len(landed)),
            "bytes": (words["bytes"], bytes_landed),
            "hits and misses": (words["descriptor_hits"] + words["descriptor_misses"], looked_up),
        }
        return [*record_differences(record, errors[:1]), *unequal(pairs)]

    def _request_differences(self, run, batch, landed):
        """Data words are asked for in the order of the rows, each once, and no others."""
        bus_bytes, addr_width = self._params.bus_bytes, self._params.addr_width
        wanted = [
            expected_words(batch.moved(load.tmap), load.coords, bus_bytes, addr_width)
            for load, count in zip(batch.loads, landed, strict=True)
            if count and load.opcode == Opcode.LOAD
        ]
        wanted = np.concatenate([np.zeros(0, np.uint64), *wanted])
        seen = requested_words(run.trace, bus_bytes)
        if len(seen) == len(wanted) and (seen == wanted).all():
            return []
        common = min(len(seen), len(wanted))
        first = int((seen[:common] == wanted[:common]).cumprod().sum())
        return [f"{len(seen)} bus words were asked for, not {len(wanted)}; the first other one is number {first}"]


def expected_words(tmap, coords, bus_bytes, addr_width=64):
    """Addresses of the bus words that a load asks for, as uint64.

    Row by row those that hold a needed byte; a row that begins in the last word of the row before shares it.
    """
    tile = walk(tmap, coords[: tmap.rank], addr_width)
    starts, count = tile.addresses[tile.inside], tile.stop - tile.start
    if not len(starts) or not count:
        return np.zeros(0, np.uint64)
    size = np.uint64(bus_bytes)
    first, last = starts // size, (starts + np.uint64(count - 1)) // size
    first[1:] += first[1:] == last[:-1]
    words = first[:, None] + np.arange(-(-count // bus_bytes) + 1, dtype=np.uint64)
    return words[words <= last[:, None]] * size


def requested_words(trace, bus_bytes, number=0):
    """Addresses of the bus words that were asked for with ID ``number`` (0: data), in order, as uint64."""
    mine = trace.request_id == number
    bursts = zip(trace.request_address[mine].tolist(), trace.request_beats[mine].tolist(), strict=True)
    words = [address + bus_bytes * beat for address, beats in bursts for beat in range(beats)]
    return np.array(words, np.uint64)


def _barrier_differences(run, operations):
    """No operation is refused, and every barrier completes one phase."""
    waited = [address for op, address, *_ in operations if op == BarrierOp.TRY_WAIT]
    return unequal(
        {
            "the number of refused barrier operations": (sum(answer.error for answer in run.barriers), 0),
            "the list of barriers that flipped": (sorted(address for _, address in run.flips), sorted(waited)),
        }
    )


def _read_differences(run, reads, smem):
    pairs = {}
    for number, lanes in enumerate(reads):
        wanted = np.stack([smem[address : address + CHUNK_BYTES] for address in lanes])
        if (run.reads[number, : len(lanes)] != wanted).any():
            pairs[f"consumer read {number} of {lanes}"] = (run.reads[number, : len(lanes)].tolist(), wanted.tolist())
    return unequal(pairs)
