"""Everything that can be wrong with a load (tmau.md section 9): refused or reported exactly, and nothing moves.

After each error the next command works, without a reset.
"""

import random

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import DESCRIPTOR, BarrierOp, Error, Opcode
from tilewright.golden.spec.registers import REGISTERS
from tilewright.golden.tmau.tile import footprint, tx_bytes
from tilewright.hw.bus.axi4 import Response
from tilewright.sim.batches import TENSOR_BYTES
from tilewright.sim.random_run import expected_words
from tilewright.sim.results import record
from tilewright.sim.session import DESCRIPTORS, Session
from tilewright.sim.stimulus import random_load

SEED = 9
PRESETS = ("unit", "default")
#: Garbage descriptors for each preset.
GARBAGE = 1200
OFFSETS = {register.name: register.offset for register in REGISTERS}
RECORD = ("error", "error_value_lo", "error_value_hi", "error_count")
BARRIER = 0x78
SMEM = 0x400

#: Two pages of rows; the box has 2 x 2 x 4 rows of 32 bytes.
GOOD = TensorMap(
    element="f16", address=0x1000, size=(64, 16, 16), stride=(128, 2048), box=(16, 4, 4), traversal=(1, 2, 1),
    swizzle="64B", fill="nan"
)  # fmt: skip
COORDS = (4, 1, -1, 0, 0)


def word_of(tmap=GOOD):
    return int.from_bytes(tmap.pack(), "little")


def put(name, stored, index=0, word=None):
    """A descriptor in which element ``index`` of a field is stored as this number."""
    word = word_of() if word is None else word
    field = DESCRIPTOR[name]
    lsb, mask = field.lsbs[index], (1 << field.width) - 1
    return word & ~(mask << lsb) | (stored & mask) << lsb


def changed(**fields):
    return word_of(TensorMap(**{"element": "f16", "size": (64, 16, 16), "stride": (128, 2048), "box": (16, 4, 4),
                                "check": False} | fields))  # fmt: skip


def reserved_bits():
    """First and last bit of every gap between the fields."""
    mask = DESCRIPTOR.reserved_mask
    edges = mask & ~(mask << 1) | mask & ~(mask >> 1)
    return [bit for bit in range(DESCRIPTOR.bits) if edges >> bit & 1]


#: Descriptors that break one rule, or of several the one that has to be reported.
BAD_DESCRIPTORS = [
    *((Error.VERSION, put("version", version)) for version in (0, 2, 255)),
    *((Error.RESERVED, word_of() | 1 << bit) for bit in reserved_bits()),
    *((Error.RANK, put("rank", rank)) for rank in (0, 6, 7)),
    (Error.RANK, changed(size=(64, 16), stride=(128,), box=(16, 4), interleave="16B")),
    (Error.RANK, put("mode", 1, word=changed(size=(64, 16), stride=(128,), box=(16, 4)))),
    (Error.ELEMENT, put("element", 15)),
    (Error.INTERLEAVE, put("interleave", 3)),
    (Error.FILL, put("fill", 3)),
    *((Error.FILL, changed(element=name, fill="nan")) for name in ("u16", "s16")),
    *((Error.ADDRESS, put("address", 0x1000 + skew)) for skew in (1, 2, 4, 8)),
    *((Error.STRIDE, put("stride", 128 + skew, index)) for skew in (1, 2, 4, 8) for index in (0, 1)),
    *((Error.BOX, put("box", stored)) for stored in (0, 14, 16, 254)),
    *((Error.TRAVERSAL, put("traversal", stored, index)) for stored in (8, 15) for index in range(3)),
    *(
        (Error.SWIZZLE, changed(box=(box, 4, 4), swizzle=name))
        for box, name in ((24, "32B"), (40, "64B"), (72, "128B"))
    ),
    *((Error.UNUSED, put(name, 1, index)) for name in ("size", "box", "traversal") for index in (3, 4)),
    *((Error.UNUSED, put("stride", 16, index)) for index in (2, 3)),
    (Error.UNSUPPORTED, put("mode", 1)),
    (Error.UNSUPPORTED, changed(interleave="16B")),
    (Error.UNSUPPORTED, changed(interleave="32B", swizzle="32B", box=(16, 4, 4))),
    (Error.UNSUPPORTED, put("unaligned", 1)),
    (Error.UNSUPPORTED, put("gather0", 1)),
    (Error.VERSION, (1 << DESCRIPTOR.bits) - 1),
    (Error.VERSION, 0),
    (Error.FILL, put("traversal", 9, 1, word=put("fill", 3, word=put("address", 0x1008)))),
]

#: Fields of commands that break one rule, on a good descriptor; smem of 0 and below count from the end.
BAD_COMMANDS = [
    *((Error.OPCODE, {"opcode": opcode}) for opcode in (0, *range(4, 16))),
    *((Error.DESCRIPTOR_ALIGNMENT, {"skew": 1 << bit}) for bit in range(6)),
    (Error.DESCRIPTOR_ALIGNMENT, {"skew": 1, "opcode": Opcode.INVALIDATE}),
    *((Error.COORDS, {"coords": (4, 1, -1, *outer)}) for outer in ((1, 0), (0, 1), (-1, -1), (0, -(1 << 31)))),
    *((Error.SMEM_ALIGNMENT, {"smem": SMEM + skew}) for skew in (1, 16, 64, 127)),
    *((Error.SMEM_RANGE, {"from_end": distance}) for distance in (128, 0, -128)),
    *((Error.SMEM_RANGE, {"smem": 1 << bit}) for bit in (20, 31)),
    *((Error.BARRIER_ALIGNMENT, {"barrier": BARRIER + skew}) for skew in (1, 2, 4)),
    (Error.BARRIER_RANGE, {"barrier_from_end": 0}),
    *((Error.BARRIER_RANGE, {"barrier": 1 << bit}) for bit in (20, 31)),
]


def names(cases):
    return [f"{code.name.lower()}-{number}" for number, (code, _) in enumerate(cases)]


class Bench:
    """A session that compares each run with golden, memory and all."""

    def __init__(self, session):
        self.session, self.params = session, session.params
        self.contents = np.zeros(session.memory_bytes + DESCRIPTORS * DESCRIPTOR.bytes, np.uint8)
        self.contents[:TENSOR_BYTES] = mix_pattern(TENSOR_BYTES, 3)
        session.global_memory.write(0, self.contents[:TENSOR_BYTES])

    def clean(self):
        """Forgets errors, and lets them raise the interrupt."""
        self.session.configure(errors=(0, 0, 0))
        self.session.run(
            registers=[(OFFSETS["irq_enable"], 0b01), (OFFSETS["control"], 0b100), (OFFSETS["irq_status"], 0b11)]
        )

    def place(self, word):
        """Puts a descriptor in both memories; returns its address."""
        address = self.session.descriptor(word)
        raw = word.to_bytes(DESCRIPTOR.bytes, "little")
        self.contents[address : address + DESCRIPTOR.bytes] = np.frombuffer(raw, np.uint8)
        return address

    def command(self, word=None, *, from_end=None, barrier_from_end=None, skew=0, **fields):
        """A load that signals a barrier, with some fields made otherwise."""
        fields = {"opcode": Opcode.LOAD, "tag": 0xA5C3, "coords": COORDS, "smem": SMEM, "signal": 1,
                  "barrier": BARRIER} | fields  # fmt: skip
        if from_end is not None:
            fields["smem"] = self.params.smem.size_bytes - from_end
        if barrier_from_end is not None:
            fields["barrier"] = self.params.smem.size_bytes - barrier_from_end
        return fields | {"descriptor": self.place(word_of() if word is None else word) + skew}

    def run(self, commands, *, transactions=None, **options):
        """Runs commands on a shared memory of sentinels and a waiting barrier; also returns golden and that memory."""
        before = mix_pattern(self.params.smem.size_bytes, 4)
        transactions = 4096 * len(commands) if transactions is None else transactions
        waiting = Barrier(pending=1, expected=1, transactions=transactions)
        before[BARRIER : BARRIER + 8] = np.frombuffer(waiting.pack().to_bytes(8, "little"), np.uint8)
        self.session.shared_memory.write(0, before)
        machine = Machine(Memory(self.contents), before.copy(), self.params.bus_bytes, self.params.addr_width)
        for command in commands:
            machine.execute(command_word(**command))
        run = self.session.run(
            commands,
            registers=[(OFFSETS[name],) for name in RECORD],
            after={"registers": ["commands", "barriers"]},
            shared=True,
            trace=True,
            **options,
        )
        assert run.violations == ()
        return run, machine, before

    def works(self):
        """Forgets the errors; a good load then works as if nothing had been."""
        self.clean()
        run, machine, _ = self.run([self.command()])
        assert machine.errors == []
        assert run.commands[0].error == Error.NONE
        assert (run.shared == machine.smem).all()
        assert [answer.data for answer in run.registers] == [0, 0, 0, 0]
        assert not run.irq


def recorded(run):
    """Error record as the registers show it: code, tag, field, value; and the count."""
    error, low, high, count = (answer.data for answer in run.registers)
    return (error & 0xFF, error >> 16, error >> 8 & 0xFF, low | high << 32), count


@pytest.fixture(scope="module", params=PRESETS)
def module_bench(request):
    with Session(request.param, latency=20, stall=0.2, seed=SEED) as session:
        yield Bench(session)


@pytest.fixture
def bench(module_bench):
    module_bench.clean()
    return module_bench


def check_refused(bench, code, command):
    """The command is dropped with this error: no byte moves, no barrier moves, and the record is golden's."""
    run, machine, before = bench.run([command])
    (expected,) = machine.errors
    assert expected.code == code
    assert run.commands[0].error == code
    assert recorded(run) == (expected, 1)
    assert run.irq
    assert run.data_requests == 0
    assert not (run.trace.request_id == 0).any()
    assert (run.shared == before).all()
    assert run.flips == []
    bench.works()


@pytest.mark.parametrize(("code", "word"), BAD_DESCRIPTORS, ids=names(BAD_DESCRIPTORS))
def test_bad_descriptor(bench, code, word):
    check_refused(bench, code, bench.command(word))


@pytest.mark.parametrize(("code", "fields"), BAD_COMMANDS, ids=names(BAD_COMMANDS))
def test_bad_command(bench, code, fields):
    check_refused(bench, code, bench.command(**fields))


def test_every_error_of_a_load_is_here():
    """The other codes are met by nothing that this version of the hardware takes."""
    elsewhere = {Error.DESCRIPTOR_READ, Error.READ, Error.BARRIER_OPERATION}  # further down
    unreachable = {Error.SIZE}  # cannot be encoded
    im2col = {Error.CORNER, Error.CHANNELS, Error.PIXELS}  # the mode is refused as a whole
    here = {code for code, _ in (*BAD_DESCRIPTORS, *BAD_COMMANDS)}
    assert here == set(Error) - {Error.NONE} - elsewhere - unreachable - im2col


@pytest.mark.parametrize("response", [Response.SLVERR, Response.DECERR], ids=lambda response: response.name)
def test_bus_error_in_a_descriptor(bench, response):
    """Whatever beat it comes with; and the descriptor is not kept."""
    bus_bytes = bench.params.bus_bytes
    beats = DESCRIPTOR.bytes // bus_bytes
    for beat in range(beats):
        bench.session.reset()  # so that nothing is in the cache
        bench.clean()
        command = bench.command()
        address = command["descriptor"]
        bench.session.configure(errors=(address + bus_bytes * beat, address + bus_bytes * beat, response.value))
        run, _, before = bench.run([command])
        assert run.commands[0].error == Error.DESCRIPTOR_READ
        assert recorded(run) == ((Error.DESCRIPTOR_READ, 0xA5C3, 0, address), 1)
        assert run.irq
        assert run.data_requests == 0
        assert run.descriptor_beats == beats
        assert (run.shared == before).all()
        bench.works()
    record(f"axi-errors-descriptor-{response.name.lower()}-{bus_bytes}", cases=beats, mismatches=0)


@pytest.mark.parametrize("response", [Response.SLVERR, Response.DECERR], ids=lambda response: response.name)
def test_bus_error_in_data(bench, response):
    """On the first, a middle or the last word, or from some word on: drained, reported, and no barrier completed."""
    bus_bytes = bench.params.bus_bytes
    words = [int(word) for word in expected_words(GOOD, COORDS, bus_bytes)]
    middle = words[len(words) // 2]
    windows = {"first": (words[0],) * 2, "middle": (middle,) * 2, "last": (words[-1],) * 2, "half": (middle, words[-1])}
    for window in windows.values():
        bench.session.configure(errors=(*window, response.value))
        run, _, before = bench.run([bench.command()])
        assert run.commands[0].error == Error.READ
        assert recorded(run) == ((Error.READ, 0xA5C3, 0, window[0]), 1)
        assert run.irq
        assert run.data_beats == len(words)
        # What lies in the destination is unspecified; all else, the barrier too, is as before.
        after = SMEM + footprint(GOOD)
        assert (run.shared[:SMEM] == before[:SMEM]).all()
        assert (run.shared[after:] == before[after:]).all()
        assert run.flips == []
        bench.works()
    record(f"axi-errors-data-{response.name.lower()}-{bus_bytes}", cases=len(windows), mismatches=0)


def test_bus_error_between_good_loads(bench):
    """Of several loads in flight only the one with the error fails; the others land and complete their barrier."""
    other = TensorMap(element="u8", address=0x8000, size=(64, 8), stride=(64,), box=(64, 4))
    commands = [
        bench.command(word_of(other), coords=(0, row, 0, 0, 0), smem=512 * row + 1024, tag=row) for row in range(5)
    ]
    commands[2] = bench.command(tag=2, smem=2048)
    word = int(expected_words(GOOD, COORDS, bench.params.bus_bytes)[3])
    bench.session.configure(errors=(word, word, Response.SLVERR.value))
    run, machine, _ = bench.run(commands)
    assert [stamp.error for stamp in run.commands] == [0, 0, Error.READ, 0, 0]
    assert recorded(run) == ((Error.READ, 2, 0, word), 1)
    spared = np.r_[0:2048, 2048 + footprint(GOOD) : len(run.shared)]
    # Golden, whose memory has no error, has completed one more transfer.
    barrier = machine.smem[BARRIER : BARRIER + 8]
    state = Barrier.unpack(int.from_bytes(barrier.tobytes(), "little"))
    state.transactions += tx_bytes(GOOD)
    barrier[:] = np.frombuffer(state.pack().to_bytes(8, "little"), np.uint8)
    assert (run.shared[spared] == machine.smem[spared]).all()
    bench.works()
    record(f"axi-errors-between-{bench.params.bus_bytes}", cases=1, mismatches=0)


def test_data_outside_memory(bench):
    """A tensor beyond the end of global memory: the bus decodes no such address."""
    end = len(bench.contents)
    tmap = TensorMap(element="u8", address=end - 64, size=(128,), box=(128,))
    run, machine, _ = bench.run([bench.command(word_of(tmap), coords=(0,) * 5)])
    assert run.commands[0].error == Error.READ
    assert recorded(run) == (machine.errors[0], 1)
    assert machine.errors[0].value == end
    bench.works()


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (BarrierOp.INIT, 0),
        (BarrierOp.INIT, 1 << 20),
        (BarrierOp.ARRIVE, 0),
        (BarrierOp.ARRIVE, 2),
        (BarrierOp.EXPECT_TX, (1 << 20) - 1),
        (BarrierOp.COMPLETE_TX, (1 << 20) + 2),
    ],
)
def test_bad_barrier_operation(bench, operation, value):
    """It is refused without any effect on the barrier; the operation before it counts."""
    run, machine, _ = bench.run([], barriers=[(BarrierOp.EXPECT_TX, BARRIER, 1), (operation, BARRIER, value)])
    machine.barrier(BarrierOp.EXPECT_TX, BARRIER, 1)
    assert machine.barrier(operation, BARRIER, value) is None
    assert [answer.error for answer in run.barriers] == [False, True]
    assert recorded(run) == (machine.errors[0], 1)
    assert machine.errors[0].code == Error.BARRIER_OPERATION
    assert run.irq
    assert (run.shared == machine.smem).all()
    bench.works()


def test_landing_on_a_barrier_whose_count_is_at_its_end(bench):
    """The bytes have landed, but the barrier refuses to count them: an error of the barrier, with tag 0."""
    run, machine, _ = bench.run([bench.command()], transactions=-(1 << 20))
    assert machine.errors[0].code == Error.BARRIER_OPERATION
    assert recorded(run) == (machine.errors[0], 1)
    assert run.irq
    assert run.flips == []
    assert (run.shared == machine.smem).all()
    bench.works()


def garbage(rng, params):
    """A legal descriptor with a few bits flipped, or random fields, or random bits."""
    kind = rng.random()
    if kind < 0.05:
        return rng.getrandbits(DESCRIPTOR.bits)
    if kind < 0.2:
        return put("version", 1, word=rng.getrandbits(DESCRIPTOR.bits) & ~DESCRIPTOR.reserved_mask)
    word = word_of(random_load(rng, gmem_bytes=TENSOR_BYTES, smem_bytes=params.smem.size_bytes // 2, max_bytes=1024)[0])
    for _ in range(rng.randint(1, 3)):
        word ^= 1 << rng.randrange(DESCRIPTOR.bits)
    return word


def test_garbage_descriptors(bench):
    """Refused exactly as golden says; what a flipped bit leaves legal is run, wherever its data then are."""
    rng = random.Random(SEED)
    half = bench.params.smem.size_bytes // 2
    refused = 0
    for _ in range(GARBAGE // 16):
        coords = [(rng.choice([0, 0, 3, -2]), *[0] * 4) for _ in range(16)]
        words = [garbage(rng, bench.params) for _ in range(16)]
        commands = [
            bench.command(word, coords=place, smem=half, tag=tag, signal=0)
            for tag, (word, place) in enumerate(zip(words, coords, strict=True))
        ]
        run, machine, before = bench.run(commands)
        errors = {error.tag: error for error in machine.errors}
        codes = [stamp.error for stamp in run.commands]
        assert codes == [errors[tag].code if tag in errors else Error.NONE for tag in range(16)]
        assert run.registers[-1].data == len(errors)
        if errors:
            setup = [error for error in machine.errors if error.code != Error.READ]
            assert recorded(run)[0] in (machine.errors[0], *setup[:1])  # setup overtakes reads
        # What a failed read leaves in its destination is unspecified, and later ones may have written over it.
        failed = [number for number, code in enumerate(codes) if code == Error.READ]
        end = half + max(
            (footprint(TensorMap.unpack(words[number].to_bytes(128, "little"))) for number in failed), default=0
        )
        assert (run.shared[:half] == before[:half]).all()
        assert (run.shared[end:] == machine.smem[end:]).all()
        refused += len(errors) - len(failed)
        bench.clean()
    print(f"seed {SEED}: {refused} of {GARBAGE} descriptors refused")
    assert refused > GARBAGE // 2
    assert refused < GARBAGE
    bench.works()
