"""A TMAU as software drives it, compared with the golden model step by step."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from tilewright.golden import ErrorRecord, GlobalMemory, Machine, TensorMap, command_word
from tilewright.golden.smem import Barrier
from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.spec import COMMAND, DESCRIPTOR, BarrierOp, Opcode, Reduction, Space
from tilewright.spec.tmau_registers import FEATURES, TMAU_REGISTERS
from tilewright.verify.random.batches import Load
from tilewright.verify.random.maps import random_load, random_start

from .axi import Registers
from .common import Source, check_bytes, reset, start_clock

__all__ = ["BARRIER", "MEMORY_BYTES", "Bench"]

MEMORY_BYTES = 64 * 1024

_SLOTS = 8

#: Bytes of global memory behind all tensors, where descriptors of one device lie.
_DESCRIPTORS = _SLOTS * DESCRIPTOR.bytes

#: Byte address of the barrier that loads signal: the last but one in shared memory, in which tiles end before it.
BARRIER = -16

_MOST_ROWS = 256


class Bench:
    """One device, its global memory, and a golden machine that does what the device is told to do.

    Sizes are those of the ports, so that a bench fits every configuration.

    Parameters
    ----------
    ports : Ports
    shared : ConsumerPort, LineMemory or BarrierPort
        Where barriers are operated on; of the first two all of shared memory can be compared.
    master : AxiLiteMaster
    rng : random.Random
        Contents of memory and all that is random.
    pauses : Pauses
    memory : bytearray or None
        Global memory, if others work on it too; then also
    machine : Machine or None
        the golden machine, and
    others : (int, int)
        which of how many devices this is: descriptors of each lie in a place of their own.

    Attributes
    ----------
    memory : bytearray
        Global memory of the device; a bus model is given it by the test.
    machine : Machine
        With the contents that both memories of the device must have.
    commands : Source
    registers : Registers
    done : dict of int to bool
        Tag of every command that has ended, and whether with an error. Tags are never used twice; 0 is for commands
        whose end does not matter.
    """

    def __init__(self, ports, shared, master, rng, pauses, memory=None, machine=None, others=(0, 1)):
        self.ports, self.shared = ports, shared
        number, count = others
        self._slots_at = MEMORY_BYTES - (number + 1) * _DESCRIPTORS
        #: Bytes of global memory that tensors may take.
        self.tensor_bytes = MEMORY_BYTES - count * _DESCRIPTORS
        self.memory = bytearray(rng.randbytes(MEMORY_BYTES)) if memory is None else memory
        self.bus_bytes = len(ports["m_axi_rdata"]) // 8
        self.machine = machine or Machine(
            GlobalMemory(np.array(self.memory, np.uint8)),
            np.zeros(shared.size, np.uint8),
            bus_bytes=self.bus_bytes,
            addr_width=len(ports["m_axi_araddr"]),
        )
        self.commands = Source(ports, "commands", COMMAND, rng, pauses.streams)
        self.registers = Registers(master, TMAU_REGISTERS)
        self.done = {}
        self._rng = rng
        self._slots = [None] * _SLOTS
        self._next_slot = 0
        self._stale = set()
        self._tag = 0

    @property
    def tile_bytes(self):
        """Bytes of shared memory that tiles may take: what is behind is for barriers."""
        return self.shared.size - 128

    @property
    def barrier(self):
        """Byte address of the barrier that loads signal."""
        return self.shared.size + BARRIER

    async def start(self):
        """Starts the clock and resets; then shared memory holds noise and the barrier waits for one arrival.

        The golden machine has the features that the device says it has.
        """
        start_clock(self.ports)
        await reset(self.ports)
        await self.begin()

    async def begin(self):
        """What :meth:`start` does after the reset."""
        cocotb.start_soon(self._watch())
        built = await self.registers.fields("features")
        self.machine.features = tuple(name for name in FEATURES if built[name])
        await self._fill()

    async def restart(self):
        """Resets in the middle of whatever is going on; then as after :meth:`start`."""
        self.withdraw()
        await reset(self.ports)
        await self.begin_again()

    def withdraw(self):
        """Takes back what was not accepted, at the beginning of a reset."""
        self.commands.withdraw()
        self.shared.withdraw()

    async def begin_again(self):
        """What :meth:`restart` does after the reset."""
        self.shared.clear()
        await self._fill()

    async def _fill(self):
        """Fills shared memory with noise and starts the barrier: with loads, because there is no other way in."""
        rows = self.shared.size // 128
        box = (128, min(rows, _MOST_ROWS))
        noise = TensorMap(element="u8", size=box, stride=(128,), box=box, address=self.bus_bytes * 3)
        for first in range(0, rows, _MOST_ROWS):
            command = self.command(Load(noise, (0, 0), 128 * first), signal=False)
            assert await self.execute(command) is not None, "the load of noise ended with an error"
        await self.operate(BarrierOp.INIT, 1)

    def tile(self):
        """A random tile that is small enough for many of them."""
        gmem_bytes, smem_bytes = self.tensor_bytes, self.tile_bytes
        return Load(*random_load(self._rng, gmem_bytes=gmem_bytes, smem_bytes=smem_bytes, max_bytes=2048))

    def tiles(self, count):
        """Random tiles, some on the descriptor of the one before."""
        tile = self.tile()
        for _ in range(count):
            yield tile
            following = self.tile()
            if self._rng.random() < 0.3:
                following = tile._replace(coords=tuple(self._rng.randrange(size) for size in tile.tmap.size))
            tile = following

    def swizzled_tiles(self):
        """A tile of sixteen rows of each swizzle, side by side."""
        smem = 0
        for span in (128, 64, 32):
            shape = {"size": (span, 16), "stride": (span,), "box": (span, 16), "swizzle": f"{span}B"}
            yield Load(TensorMap(element="u8", address=self.bus_bytes, **shape), (0, 0), smem)
            smem += 16 * span

    def odd_tile(self):
        """A random tile of any mode and alignment at which a store can begin."""
        start = random_start(self._rng, first=0, end=self.tensor_bytes, most_bytes=1024, stores=True)
        return Load(start.tmap, start.coords, 128 * self._rng.randrange(self.tile_bytes // 128 - 8))

    def command(self, tile, signal=True, opcode=Opcode.LOAD):
        """The command that loads or stores ``tile``, as keywords; its descriptor is in global memory."""
        coords = [*tile.coords, *[0] * (5 - len(tile.coords))]
        return {
            "opcode": opcode,
            "signal": int(signal),
            "tag": self.next_tag(),
            "smem": tile.smem,
            "barrier": self.barrier,
            "descriptor": self._place(tile.tmap.pack()),
            "coords": coords,
        }

    def store(self, tile):
        """A store of ``tile`` as keywords, or a reduction if there is one for its elements."""
        command = self.command(tile, signal=False, opcode=Opcode.STORE)
        reductions = [op for op in Reduction if is_legal(op, tile.tmap.element)]
        if reductions and self._rng.random() < 0.7:
            command |= {"opcode": Opcode.REDUCE, "reduction": self._rng.choice(reductions)}
        return command

    def copy(self):
        """A random copy of a block within or between the memories, as keywords; refused if its ranges overlap."""
        size = 16 * self._rng.randint(1, 40)
        command = {"opcode": Opcode.COPY_BLOCK, "tag": self.next_tag(), "size": size}
        for side in ("source", "destination"):
            space = self._rng.choice(list(Space))
            limit = self.tile_bytes if space == Space.SHARED else self.tensor_bytes
            command |= {f"{side}_space": space, side: 16 * self._rng.randint(0, (limit - size) // 16)}
        return command

    def next_tag(self):
        """A tag that no command has had; of processors, below those of the pager."""
        self._tag = (self._tag + 1) & 0x7FFF
        return self._tag

    def _place(self, descriptor):
        """Address of ``descriptor``: where it lies already, or the slot that was written longest ago."""
        if descriptor in self._slots:
            return self._slots_at + self._slots.index(descriptor) * DESCRIPTOR.bytes
        slot, self._next_slot = self._next_slot, (self._next_slot + 1) % _SLOTS
        self._slots[slot] = descriptor
        address = self._slots_at + slot * DESCRIPTOR.bytes
        self.memory[address : address + DESCRIPTOR.bytes] = descriptor
        self.machine.gmem.write(address, descriptor)
        self._stale.add(address)
        return address

    async def issue(self, command, more=0):
        """Hands a command, given as keywords, to the device; drops its descriptor from the cache if it was replaced.

        ``more`` are bits that it has beside its fields.
        """
        address = command.get("descriptor")
        if address in self._stale:
            self._stale.remove(address)
            await self.commands.send(command_word(Opcode.INVALIDATE, descriptor=address))
        await self.commands.send(command_word(**command) | more)

    async def execute(self, command, more=0):
        """Runs a command, as :meth:`issue` takes it, on both sides, and waits until it has ended; both must end alike.

        Returns the bytes that it moved, or None if it ended with an error.
        """
        moved = self.machine.execute(command_word(**command) | more)
        await self.issue(command, more)
        failed = await self.ended(command)
        assert failed == (moved is None), f"{command}: error {failed}, but on golden {moved} bytes"
        return moved

    async def load(self, *tiles):
        """Loads up to four tiles on both sides, one right behind the other, and waits for their barrier."""
        commands = [self.command(tile) for tile in tiles]
        parity = self.golden_barrier().phase
        await self.operate(BarrierOp.EXPECT_TX, sum(tx_bytes(tile.tmap) for tile in tiles))
        await self.operate(BarrierOp.ARRIVE, 1)
        for command in commands:
            self.machine.execute(command_word(**command))
            await self.issue(command)
        for command in commands:
            assert not await self.ended(command), f"command {command} ended with an error"
        assert await self.operate(BarrierOp.TRY_WAIT, parity), "the barrier of loads that are done is not complete"

    async def load_and_compare(self, count):
        """``count`` random tiles, in groups, each group compared with the golden machine."""
        tiles = list(self.tiles(count))
        while tiles:
            group = self._rng.randint(1, 4)
            await self.load(*tiles[:group])
            await self.compare()
            del tiles[:group]

    async def ended(self, command, cycles=20_000):
        """Waits until a command, given as keywords, has ended; whether that was with an error."""
        for _ in range(cycles):
            if command["tag"] in self.done:
                return self.done[command["tag"]]
            await RisingEdge(self.ports["clk"])
        raise TimeoutError(f"command {command} has not ended after {cycles} cycles")

    def golden_barrier(self):
        """State of the barrier that loads signal."""
        return Barrier.read(self.machine.smem, self.barrier)

    async def operate(self, op, value):
        """A barrier operation on both sides, with the same answer; returns ``done``."""
        barrier = self.golden_barrier()
        expected = barrier.apply(op, value)
        barrier.write(self.machine.smem, self.barrier)
        answer = await self.shared.operate(op, self.barrier, value)
        assert answer == (expected, False), f"{op!r} {value}: (done, error) {answer}, not done={expected}"
        return expected

    async def compare(self, but=None):
        """Every byte of both memories, guard bands included, is what the golden machine has.

        ``but`` marks bytes of shared memory that may have any value: the golden machine takes them over. Every write
        must have been answered.
        """
        image = await self.shared.image()
        if but is not None:
            self.machine.smem[but] = image[but]
        check_bytes("shared memory", image, self.machine.smem)
        self.compare_global()

    def compare_global(self):
        """Every byte of global memory is what the golden machine has."""
        check_bytes("global memory", np.frombuffer(self.memory, np.uint8), self.machine.gmem.data)

    async def error_record(self):
        """The error record as the registers show it, and their count of errors; both are cleared."""
        record = [await self.registers.read(name) for name in ("error", "error_address_lo", "error_address_hi")]
        count = await self.registers.read("error_count")
        await self.registers.write("control", clear_error=1)
        return ErrorRecord.of_registers(*record), count

    async def _watch(self):
        """Collects the device's notices; never returns."""
        clk, valid, tag, error = (self.ports[name] for name in ("clk", "done_valid", "done_tag", "done_error"))
        while True:
            await RisingEdge(clk)
            if int(valid.value) and not self.ports.in_reset:
                self.done[int(tag.value)] = bool(int(error.value))
