"""Stands in for the replay program where there is no GPU: speaks the protocol of ``job.h``, and golden does the work.

Records are decoded with ``struct``, independently of packing.py. The arguments make it lie, so that tests can see which
lies are noticed.
"""

import argparse
import struct
import sys
import time

import numpy as np

from tilewright.golden import Cluster, DescriptorError, Memory, TensorMap, command_word, delivery_bits
from tilewright.golden.smem import Barrier
from tilewright.spec import BarrierOp, Element, Opcode, Space

HELLO, JOB, REPLY = 0x32475754, 0x4A475754, 0x52475754
SHARED_BYTES = 232448 - 16
INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
DONE, REFUSED, NO_SUCH, UNFINISHED = range(4)
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", None, "f64", "bf16", "f32", "tf32")
BLOCK_ELEMENTS = (0, Element.U32, Element.S32, Element.U64, Element.S64, Element.F16, Element.BF16, Element.F32)
TENSOR_OPS = {1: Opcode.LOAD, 2: Opcode.STORE, 3: Opcode.REDUCE, 4: Opcode.PREFETCH}
#: Opcode, memory of the source, memory of the destination.
BLOCK_OPS = {
    5: (Opcode.COPY_BLOCK, Space.GLOBAL, Space.SHARED),
    6: (Opcode.COPY_BLOCK, Space.SHARED, Space.GLOBAL),
    7: (Opcode.COPY_BLOCK, Space.SHARED, Space.SHARED),
    8: (Opcode.COPY_BLOCK, Space.SHARED, Space.GLOBAL),
    9: (Opcode.COPY_BLOCK, Space.SHARED, Space.SHARED),
    10: (Opcode.PREFETCH_BLOCK, Space.GLOBAL, Space.SHARED),
}
BARRIER_OPS = (1, 5, 7, 9)  # those that end at a barrier
ARRIVE = 11


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-gpu", metavar="WHY", help="say that there is no GPU")
    parser.add_argument("--end-at-once", type=int, metavar="STATUS", help="end before the hello")
    parser.add_argument("--shared-bytes", type=int, default=SHARED_BYTES, help="shared memory of the GPU")
    parser.add_argument("--flip-shared", type=int, metavar="ADDRESS", help="flip a bit of this byte in every reply")
    parser.add_argument("--flip-global", type=int, metavar="ADDRESS")
    parser.add_argument("--refuse", action="store_true", help="the driver refuses every map")
    parser.add_argument(
        "--accept", action="store_true", help="the driver accepts every map; what is wrong does nothing"
    )
    parser.add_argument("--miscount", type=int, default=0, metavar="BYTES", help="add them to every count")
    parser.add_argument("--miscount-core", type=int, default=None, metavar="CORE", help="but of this core alone")
    parser.add_argument("--unfinished", type=int, metavar="COMMAND", help="this command is never done")
    parser.add_argument("--no-such", type=int, metavar="COMMAND", help="there is no such instruction")
    # Jobs by their global memory, as a program that was started again has forgotten what came before.
    parser.add_argument("--fail", type=int, metavar="GLOBAL_BYTES", help="such a job breaks the context")
    parser.add_argument("--die", type=int, metavar="GLOBAL_BYTES", help="such a job ends the program without a reply")
    parser.add_argument("--hang", type=int, metavar="GLOBAL_BYTES", help="such a job takes for ever")
    return parser.parse_args()


def main():
    args = arguments()
    if args.end_at_once is not None:
        sys.exit(args.end_at_once)
    write(struct.pack("<IIiiiiII", HELLO, bool(args.no_gpu), 9, 0, 13000, 13000, args.shared_bytes, 0))
    write(struct.pack("<96s160s", b"Stand-in", (args.no_gpu or "").encode()))
    sys.stdout.buffer.flush()
    if args.no_gpu:
        sys.exit(2)
    while header := sys.stdin.buffer.read(24):
        serve(args, *struct.unpack("<IHHIIQ", header))
        sys.stdout.buffer.flush()


def serve(args, magic, maps, more_cores, commands, shared_bytes, global_bytes):
    assert magic == JOB
    assert shared_bytes % 16 == 0 and shared_bytes <= args.shared_bytes
    cores = more_cores + 1
    assert cores <= 8
    maps = [Map(read(184)) for _ in range(maps)]
    commands = [read(72) for _ in range(commands)]
    gmem, smem = (np.frombuffer(read(size), np.uint8).copy() for size in (global_bytes, shared_bytes))
    if args.die == global_bytes:
        sys.exit(7)
    if args.hang == global_bytes:
        time.sleep(600)
    if args.fail == global_bytes:
        answer(1, b"cudaErrorIllegalAddress", [0] * len(maps), [(DONE, 0, 0)] * len(commands) * cores)
        sys.stdout.buffer.flush()
        sys.exit(3)
    smems = [smem.copy() for _ in range(cores)]
    cluster = Cluster(Memory(gmem), smems)
    results = [0 if args.accept else INVALID_VALUE if args.refuse or not tmap.good else 0 for tmap in maps]
    endings = []
    for number, command in enumerate(commands):
        if number in (args.unfinished, args.no_such):
            endings += [(UNFINISHED if number == args.unfinished else NO_SUCH, 0, 0)] * cores
        else:
            lies = [args.miscount * (args.miscount_core in (None, core)) for core in range(cores)]
            endings += carry_out(cluster, maps, results, command, lies)
    if args.flip_shared is not None:
        smems[-1][args.flip_shared] ^= 1
    if args.flip_global is not None:
        gmem[args.flip_global] ^= 1
    answer(0, b"", results, endings)
    write(b"".join(memory.tobytes() for memory in (gmem, *smems)))


class Map:
    """A map from its record; ``word`` is our descriptor, None if ``good`` is false."""

    def __init__(self, record):
        address, *rest = struct.unpack("<Q5Q4Q5I5I3i3i10I", record)
        size, stride, box, step, lower, upper = (take(rest, count) for count in (5, 4, 5, 5, 3, 3))
        channels, pixels, im2col, element, rank, interleave, swizzle, promotion, fill, reserved = rest
        assert reserved == 0
        assert not any([*size[rank:], *stride[max(rank - 1, 0) :], *box[rank:], *step[rank:]])
        spatial = max(rank - 2, 0)
        walk = (
            {"lower": lower[:spatial], "upper": upper[:spatial], "channels": channels, "pixels": pixels}
            if im2col
            else {"box": box[:rank]}
        )
        self.rank, self.word = rank, None
        try:
            tmap = TensorMap(
                address=address,
                size=size[:rank],
                stride=stride[: max(rank - 1, 0)],
                traversal=step[:rank],
                mode="im2col" if im2col else "tile",
                element=ELEMENTS[element],
                interleave=("none", "16B", "32B")[interleave],
                swizzle=("none", "32B", "64B", "128B")[swizzle],
                l2_promotion=("none", "64B", "128B", "256B")[promotion],
                fill=("zero", "nan")[fill],
                **walk,
            )
        except DescriptorError:
            return
        self.word = int.from_bytes(tmap.pack(), "little")

    @property
    def good(self):
        return self.word is not None


def carry_out(cluster, maps, results, record, lies):
    """Outcome, counted, bytes of a command, of each core."""
    source, destination, size, op, core, receiver, number = struct.unpack("<QQIHBBI", record[:28])
    coords, offsets = struct.unpack("<5i", record[28:48]), struct.unpack("<3H", record[48:54])
    multicast, shared, reduction, element, expected = struct.unpack("<H4I", record[54:])
    cores = range(len(cluster.cores))
    if op == 0:
        return [(DONE, 0, 0)] * len(cores)
    if op == ARRIVE:
        return arrive(len(cores), core, multicast, expected, size, lies)
    assert not multicast or op in (1, 5)
    receivers = multicast or 1 << (receiver if op in (7, 9) else core)
    assert op in (7, 9) or receiver == 0
    delivery = delivery_bits(receivers) if op in BARRIER_OPS else 0
    if op in TENSOR_OPS:
        if results[number]:
            return [(REFUSED, 0, 0)] * len(cores)
        if not maps[number].good:  # what this driver should not have accepted
            return [(DONE, 0, 0)] * len(cores)
        assert not any(coords[maps[number].rank :])
        fields = {"smem": shared, "coords": coords, "offsets": offsets, "reduction": reduction}
        moved = cluster.execute_on(core, maps[number].word, command_word(TENSOR_OPS[op], **fields) | delivery)
    else:
        opcode, source_space, destination_space = BLOCK_OPS[op]
        fields = {"source": source, "size": size}
        if opcode == Opcode.COPY_BLOCK:
            fields |= {"source_space": source_space, "destination_space": destination_space}
            fields |= {"destination": destination, "reduction": reduction, "element": BLOCK_ELEMENTS[element]}
            assert bool(reduction) == (op in (8, 9)) == bool(element)
        moved = cluster.execute(core, command_word(opcode, **fields) | delivery)
    assert not any(machine.errors for machine in cluster.cores)
    if op not in BARRIER_OPS:
        assert expected == 0
        return [(DONE, 0, 0)] * len(cores)
    assert expected == moved
    return [(DONE, 1, moved * (receivers >> core & 1) + lies[core]) for core in cores]


def arrive(cores, owner, mask, expected, value, lies):
    """The arrivals that each core counts at a barrier of its own, in a cluster that has nothing else."""
    assert 0 < mask < 1 << cores
    smems = [np.zeros(8, np.uint8) for _ in range(cores)]
    cluster = Cluster(Memory(np.zeros(1, np.uint8)), smems)
    for core in range(cores):
        cluster.barrier(core, BarrierOp.INIT, 0, expected)
    for core in range(cores):
        if mask >> core & 1:
            cluster.barrier(core, BarrierOp.ARRIVE, 0, value, of=owner)
    assert not any(machine.errors for machine in cluster.cores)
    found = [Barrier.read(smem, 0) for smem in smems]
    counted = [barrier.expected - barrier.pending + barrier.phase * barrier.expected for barrier in found]
    return [(DONE, 1, count + lie) for count, lie in zip(counted, lies, strict=True)]


def answer(status, message, results, endings):
    write(struct.pack("<IIII160s", REPLY, status, 0, 0, message))
    for result in results:
        write(struct.pack("<i", result))
    for ending in endings:
        write(struct.pack("<IIq", *ending))


def take(numbers, count):
    taken = numbers[:count]
    del numbers[:count]
    return taken


def read(count):
    data = sys.stdin.buffer.read(count)
    assert len(data) == count
    return data


def write(data):
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
