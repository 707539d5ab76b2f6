"""Input and output of the replay program: the records of ``job.h`` as numpy types, and their numbers."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tilewright.golden import tx_bytes
from tilewright.sim.replay.commands import CaseOp
from tilewright.spec import Element, Mode, Opcode, Reduction, Space

__all__ = ["BLOCK_TYPES", "GRANULE", "MAGIC", "MOST_CORES", "MOST_EXPECTED", "RECORDS", "SHARED_BYTES",
           "SHARED_REDUCTIONS", "Ending", "Issue", "Op", "Status", "counted_bytes", "fill_map", "issues",
           "job_shared_bytes", "pack"]  # fmt: skip

#: Largest shared memory of a job: the memory of a block on a GPU of compute capability 9.0, less a barrier.
SHARED_BYTES = 232448 - 16

#: Shared memory of a job is a multiple of this number of bytes.
GRANULE = 16

#: Cores of a job: the blocks of threads that every such GPU accepts in a cluster.
MOST_CORES = 8

#: The most bytes that a barrier counts.
MOST_EXPECTED = (1 << 20) - 1

#: The first word of a hello, a job and a reply.
MAGIC = {"Hello": 0x32475754, "JobHeader": 0x4A475754, "ReplyHeader": 0x52475754}

#: Names of the structures in ``job.h``, and their types.
RECORDS = {
    "Hello": np.dtype([
        ("magic", "<u4"), ("status", "<u4"), ("major", "<i4"), ("minor", "<i4"), ("driver", "<i4"), ("runtime", "<i4"),
        ("shared_bytes", "<u4"), ("reserved", "<u4"), ("gpu", "S96"), ("message", "S160"),
    ]),
    "JobHeader": np.dtype([
        ("magic", "<u4"), ("maps", "<u2"), ("more_cores", "<u2"), ("commands", "<u4"), ("shared_bytes", "<u4"),
        ("global_bytes", "<u8"),
    ]),
    "MapRecord": np.dtype([
        ("address", "<u8"), ("size", "<u8", 5), ("stride", "<u8", 4), ("box", "<u4", 5), ("step", "<u4", 5),
        ("lower", "<i4", 3), ("upper", "<i4", 3), ("channels", "<u4"), ("pixels", "<u4"), ("im2col", "<u4"),
        ("type", "<u4"), ("rank", "<u4"), ("interleave", "<u4"), ("swizzle", "<u4"), ("promotion", "<u4"),
        ("fill", "<u4"), ("reserved", "<u4"),
    ]),
    "CommandRecord": np.dtype([
        ("source", "<u8"), ("destination", "<u8"), ("size", "<u4"), ("op", "<u2"), ("core", "u1"), ("receiver", "u1"),
        ("map", "<u4"), ("coords", "<i4", 5), ("offsets", "<u2", 3), ("multicast", "<u2"), ("shared", "<u4"),
        ("reduction", "<u4"), ("type", "<u4"), ("expected", "<u4"),
    ]),
    "ReplyHeader": np.dtype([
        ("magic", "<u4"), ("status", "<u4"), ("command", "<u4"), ("reserved", "<u4"), ("message", "S160"),
    ]),
    "MapReply": np.dtype([("result", "<i4")]),
    "CommandReply": np.dtype([("outcome", "<u4"), ("counted", "<u4"), ("bytes", "<i8")]),
}  # fmt: skip


class Status(IntEnum):
    """Whether there is a GPU, or a job was completed."""

    OK = 0
    FAILED = 1


class Op(IntEnum):
    """The operation of a command of a job."""

    NOTHING = 0
    LOAD = 1
    STORE = 2
    REDUCE = 3
    PREFETCH = 4
    GLOBAL_TO_SHARED = 5
    SHARED_TO_GLOBAL = 6
    SHARED_TO_SHARED = 7
    REDUCE_TO_GLOBAL = 8
    REDUCE_TO_SHARED = 9
    PREFETCH_BLOCK = 10
    ARRIVE = 11


class Ending(IntEnum):
    """How a command of a job ended: ``Outcome`` in ``job.h``."""

    DONE = 0
    REFUSED = 1  #: the driver refused its map
    NO_SUCH = 2  #: there is no such instruction
    UNFINISHED = 3  #: no number of bytes completed the phase of its barrier


#: CUtensorMapDataType of each element: the driver has no signed bytes and halves, and no 8-bit floats. It has two types
#: of f32; the TMAU's is the one whose reductions flush subnormal numbers (docs/tmau.md).
_MAP_TYPES = {
    Element.U8: 0, Element.S8: 0, Element.F8E4M3: 0, Element.F8E5M2: 0, Element.U16: 1, Element.S16: 1,
    Element.U32: 2, Element.S32: 3, Element.U64: 4, Element.S64: 5, Element.F16: 6, Element.F32: 10, Element.F64: 8,
    Element.BF16: 9, Element.TF32: 11,
}  # fmt: skip

#: Type of each element that a block copy can reduce.
BLOCK_TYPES = {
    Element.U32: 1, Element.S32: 2, Element.U64: 3, Element.S64: 4, Element.F16: 5, Element.BF16: 6, Element.F32: 7,
}  # fmt: skip

_WORDS = {Element.U32, Element.S32}
#: Reductions of blocks into shared memory that silicon has; into global memory it has all of ours.
SHARED_REDUCTIONS = {
    Reduction.ADD: {*_WORDS, Element.U64},
    Reduction.MIN: _WORDS,
    Reduction.MAX: _WORDS,
    Reduction.INC: {Element.U32},
    Reduction.DEC: {Element.U32},
    **dict.fromkeys((Reduction.AND, Reduction.OR, Reduction.XOR), _WORDS),
}

_OPS = {
    Opcode.LOAD: Op.LOAD,
    Opcode.STORE: Op.STORE,
    Opcode.REDUCE: Op.REDUCE,
    Opcode.PREFETCH: Op.PREFETCH,
    Opcode.PREFETCH_BLOCK: Op.PREFETCH_BLOCK,
    Opcode.COMMIT: Op.NOTHING,
    Opcode.WAIT: Op.NOTHING,
    Opcode.WAIT_ALL: Op.NOTHING,
    CaseOp.ARRIVE: Op.ARRIVE,
}
#: By source, destination, and whether the destination is reduced.
_COPIES = {
    (Space.GLOBAL, Space.SHARED, False): Op.GLOBAL_TO_SHARED,
    (Space.SHARED, Space.GLOBAL, False): Op.SHARED_TO_GLOBAL,
    (Space.SHARED, Space.SHARED, False): Op.SHARED_TO_SHARED,
    (Space.SHARED, Space.GLOBAL, True): Op.REDUCE_TO_GLOBAL,
    (Space.SHARED, Space.SHARED, True): Op.REDUCE_TO_SHARED,
}


class Issue(NamedTuple):
    """One issue of a command of a case; ``spec`` is the ``MapSpec`` that it names, or None.

    ``core`` issues it. ``multicast`` is the mask of the cores in which its data land; None means the issuer.
    ``source_core`` is the other core from whose shared memory it copies, or None.
    """

    opcode: Opcode | CaseOp
    map: str
    spec: object
    fields: dict
    core: int
    multicast: int | None
    source_core: int | None

    @property
    def ends_at_barrier(self):
        """Whether silicon counts its bytes, or arrivals."""
        return self.opcode in (Opcode.LOAD, CaseOp.ARRIVE) or self.fields.get("destination_space") == Space.SHARED

    def lands_in(self, core):
        """Whether its data land in the shared memory of a core, where a barrier counts them; or its arrivals."""
        return self.ends_at_barrier and bool((1 << self.core if self.multicast is None else self.multicast) >> core & 1)


def issues(case):
    """Every issue of every command of a case, in order."""
    return [
        Issue(command.opcode, command.map, case.maps.get(command.map), fields, command.core, *_delivery(command))
        for command in case.commands
        for fields in command.issues
    ]


def _delivery(command):
    """Mask of the cores in which data land, and core that is read; None if the command does not use them."""
    if command.opcode == Opcode.LOAD:
        return command.receivers, None
    if command.opcode != Opcode.COPY_BLOCK:
        return None, None
    lands, reads = (command.fields[f"{side}_space"] == Space.SHARED for side in ("destination", "source"))
    return command.receivers if lands else None, command.source_core if reads else None


def counted_bytes(issue):
    """Bytes of the transfer of an issue, by golden's rules; 0 if it transfers nothing, or the number is unknown."""
    if issue.opcode in (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE):
        tmap = issue.spec.tmap
        return tx_bytes(tmap) if tmap.rank and all(tmap.traversal) else 0
    return issue.fields["size"] if issue.opcode == Opcode.COPY_BLOCK else 0


def pack(case, shared_bytes=SHARED_BYTES):
    """The job of a case, as bytes, for a GPU whose jobs have at most this much shared memory."""
    commands = issues(case)
    header = np.zeros((), RECORDS["JobHeader"])
    smem = np.zeros(job_shared_bytes(case, shared_bytes), np.uint8)
    contents = case.smem.contents()[: len(smem)]
    smem[: len(contents)] = contents
    header["magic"], header["maps"], header["commands"] = MAGIC["JobHeader"], len(case.maps), len(commands)
    header["more_cores"] = case.cores - 1
    header["shared_bytes"], header["global_bytes"] = len(smem), case.gmem.size
    maps = np.zeros(len(case.maps), RECORDS["MapRecord"])
    for record, spec in zip(maps, case.maps.values(), strict=True):
        fill_map(record, spec.tmap)
    numbers = {name: number for number, name in enumerate(case.maps)}
    records = np.zeros(len(commands), RECORDS["CommandRecord"])
    for record, issue in zip(records, commands, strict=True):
        _fill_command(record, issue, numbers)
    return b"".join(part.tobytes() for part in (header, maps, records, case.global_contents(), smem))


def job_shared_bytes(case, shared_bytes=SHARED_BYTES):
    """Bytes of shared memory of each core of the job: the case's, but at most a GPU's."""
    return min(-(-case.smem.size // GRANULE) * GRANULE, shared_bytes // GRANULE * GRANULE)


def fill_map(record, tmap):
    """A map as arguments of the driver's functions; arguments that they do not read stay zero."""
    for name, values in (("size", tmap.size), ("stride", tmap.stride), ("box", tmap.box), ("step", tmap.traversal),
                         ("lower", tmap.lower), ("upper", tmap.upper)):  # fmt: skip
        record[name][: len(values)] = values
    record["address"], record["rank"] = tmap.address, tmap.rank
    record["type"], record["fill"] = _MAP_TYPES[tmap.element], tmap.fill
    record["interleave"], record["swizzle"], record["promotion"] = tmap.interleave, tmap.swizzle, tmap.l2_promotion
    if tmap.mode == Mode.IM2COL:
        record["im2col"], record["channels"], record["pixels"] = 1, tmap.channels, tmap.pixels


def _fill_command(record, issue, numbers):
    fields = issue.fields
    record["core"] = issue.core
    if issue.spec:
        record["map"] = numbers[issue.map]
        for name in ("coords", "offsets"):
            values = fields.get(name, ())
            record[name][: len(values)] = values
        record["shared"] = fields.get("smem", 0)
    elif "size" in fields:
        record["source"], record["size"] = fields["source"], fields["size"]
        record["destination"] = fields.get("destination", 0)
    record["reduction"] = fields.get("reduction", 0)
    if issue.opcode == Opcode.COPY_BLOCK:
        record["op"] = _COPIES[fields["source_space"], fields["destination_space"], "reduction" in fields]
        record["type"] = BLOCK_TYPES[fields["element"]] if "element" in fields else 0
    else:
        record["op"] = _OPS[issue.opcode]
    if record["op"] == Op.ARRIVE:
        record["size"], record["multicast"] = fields["value"], fields["arriving"]
        record["expected"] = fields["expected"]
    if record["op"] in (Op.LOAD, Op.GLOBAL_TO_SHARED, Op.SHARED_TO_SHARED, Op.REDUCE_TO_SHARED):
        record["expected"] = min(counted_bytes(issue), MOST_EXPECTED)
    if record["op"] in (Op.LOAD, Op.GLOBAL_TO_SHARED):
        record["multicast"] = issue.multicast or 0
    elif record["op"] in (Op.SHARED_TO_SHARED, Op.REDUCE_TO_SHARED):
        record["receiver"] = issue.core if issue.multicast is None else issue.multicast.bit_length() - 1
