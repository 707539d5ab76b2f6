"""A testbench around the monitored subsystem: software's view of it, compared with the golden model step by step."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from tilewright.golden import ErrorRecord, GlobalMemory, Machine, TensorMap, command_word
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import DESCRIPTOR, BarrierOp, Opcode, Space
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.hw.bus.commands import command_layout
from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, read_data_layout
from tilewright.sim.harness.axi_rules import Rule, Wait
from tilewright.sim.random.batches import Load

from .common import Sink, Source, reset, start_clock

__all__ = ["BARRIER", "MEMORY_BYTES", "REGISTER", "Bench"]

MEMORY_BYTES = 64 * 1024

_CHUNK = 16
_LANES = 8
_SLOTS = 8

#: Where descriptors lie: behind all tensors.
_DESCRIPTORS = MEMORY_BYTES - _SLOTS * DESCRIPTOR.bytes

#: Byte address of the barrier that loads signal: the last but one in shared memory, in which tiles end before it.
BARRIER = -16

REGISTER = {register.name: register for register in TMAU_REGISTERS}


class Bench:
    """One device, its global memory, and a golden machine that does what the device is told to do.

    Parameters
    ----------
    dut : handle
        A ``MonitoredSubsystem``.
    params : TmauParams
    rng : random.Random
        Contents of memory and seeds of all drivers.

    Attributes
    ----------
    memory : bytearray
        Global memory of the device; a bus model is given it by the test.
    machine : Machine
        With the contents that both memories of the device must have.
    reads, read_data, barriers, barrier_results, commands : Source, Sink
    registers : AxiLiteMaster
        Of cocotbext-axi.
    done : dict of int to bool
        Tag of every command that has ended, and whether with an error. Tags are never used twice; 0 is for commands
        whose end does not matter.
    """

    def __init__(self, dut, params, rng):
        self.dut = dut
        self.params = params
        self.memory = bytearray(rng.randbytes(MEMORY_BYTES))
        self.machine = Machine(
            GlobalMemory(np.array(self.memory, np.uint8)),
            np.zeros(params.smem.size_bytes, np.uint8),
            bus_bytes=params.bus_bytes,
            addr_width=params.addr_width,
        )
        self.commands = Source(dut, "commands", command_layout())
        self.reads = Source(dut, "reads", ReadLayout(params.smem))
        self.read_data = Sink(dut, "read_data", read_data_layout(), seed=rng.random())
        self.barriers = Source(dut, "barriers", BarrierRequestLayout(params.smem))
        self.barrier_results = Sink(dut, "barrier_results", BarrierResultLayout(), seed=rng.random())
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.done = {}
        self._slots = [None] * _SLOTS
        self._next_slot = 0
        self._stale = set()
        self._tag = 0

    @property
    def tensor_bytes(self):
        """Bytes of global memory that tensors may take."""
        return _DESCRIPTORS

    @property
    def tile_bytes(self):
        """Bytes of shared memory that tiles may take: what is behind is for barriers."""
        return self.params.smem.size_bytes - 128

    @property
    def barrier(self):
        """Byte address of the barrier that loads signal."""
        return self.params.smem.size_bytes + BARRIER

    async def start(self):
        """Starts clock and drivers and resets; then shared memory holds noise and the barrier waits for one arrival."""
        start_clock(self.dut)
        for coroutine in (self.read_data.run(), self.barrier_results.run(), self._watch()):
            cocotb.start_soon(coroutine)
        await reset(self.dut)
        await self.fill()

    async def restart(self):
        """Resets in the middle of whatever is going on; then as after :meth:`start`."""
        for source in (self.commands, self.reads, self.barriers):
            source.withdraw()
        await reset(self.dut)
        for sink in (self.read_data, self.barrier_results):
            sink.clear()
        await self.fill()

    async def fill(self):
        """Fills shared memory with noise and starts the barrier: with a load, because there is no other way in."""
        rows = self.params.smem.rows
        address = self.params.bus_bytes * 3
        noise = TensorMap(element="u8", size=(128, rows), stride=(128,), box=(128, rows), address=address)
        command = self.command(Load(noise, (0, 0), 0), signal=False)
        assert await self.execute(command) is not None, "the load of noise ended with an error"
        await self.operate(BarrierOp.INIT, 1)

    def command(self, tile, signal=True, opcode=Opcode.LOAD):
        """The command that loads or stores ``tile``, as keywords; its descriptor is in global memory."""
        coords = [*tile.coords, *[0] * (5 - len(tile.coords))]
        return {
            "opcode": opcode,
            "signal": int(signal),
            "tag": self._next_tag(),
            "smem": tile.smem,
            "barrier": self.barrier,
            "descriptor": self._place(tile.tmap.pack()),
            "coords": coords,
        }

    def copy(self, rng):
        """A random copy of a block within or between the memories, as keywords; refused if its ranges overlap."""
        size = 16 * rng.randint(1, 40)
        command = {"opcode": Opcode.COPY_BLOCK, "tag": self._next_tag(), "size": size}
        for side in ("source", "destination"):
            space = rng.choice(list(Space))
            limit = self.tile_bytes if space == Space.SHARED else self.tensor_bytes
            command |= {f"{side}_space": space, side: 16 * rng.randint(0, (limit - size) // 16)}
        return command

    def _next_tag(self):
        self._tag = (self._tag + 1) & 0xFFFF
        return self._tag

    def _place(self, descriptor):
        """Address of ``descriptor``: where it lies already, or the slot that was written longest ago."""
        if descriptor in self._slots:
            return _DESCRIPTORS + self._slots.index(descriptor) * DESCRIPTOR.bytes
        slot, self._next_slot = self._next_slot, (self._next_slot + 1) % _SLOTS
        self._slots[slot] = descriptor
        address = _DESCRIPTORS + slot * DESCRIPTOR.bytes
        self.memory[address : address + DESCRIPTOR.bytes] = descriptor
        self.machine.gmem.write(address, descriptor)
        self._stale.add(address)
        return address

    async def issue(self, command):
        """Hands a command, given as keywords, to the device; drops its descriptor from the cache if it was replaced."""
        address = command.get("descriptor")
        if address in self._stale:
            self._stale.remove(address)
            await self.commands.send(command_word(Opcode.INVALIDATE, descriptor=address))
        await self.commands.send(command_word(**command))

    async def execute(self, command):
        """Runs a command, given as keywords, on both sides, and waits until it has ended; both must end alike.

        Returns the bytes that it moved, or None if it ended with an error.
        """
        moved = self.machine.execute(command_word(**command))
        await self.issue(command)
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

    async def ended(self, command, cycles=20_000):
        """Waits until a command, given as keywords, has ended; whether that was with an error."""
        for _ in range(cycles):
            if command["tag"] in self.done:
                return self.done[command["tag"]]
            await RisingEdge(self.dut.clk)
        raise TimeoutError(f"command {command} has not ended after {cycles} cycles")

    def golden_barrier(self):
        """State of the barrier that loads signal."""
        return Barrier.read(self.machine.smem, self.barrier)

    async def operate(self, op, value):
        """A barrier operation on both sides, with the same answer; returns ``done``."""
        barrier = self.golden_barrier()
        expected = barrier.apply(op, value)
        barrier.write(self.machine.smem, self.barrier)
        await self.barriers.send({"op": op, "address": self.barrier, "value": value})
        result = await self.barrier_results.get()
        assert (result.done, result.error) == (expected, 0), f"{op!r} {value}: {result!r}, not done={expected}"
        return bool(result.done)

    async def image(self):
        """All of shared memory, read through the consumer's port."""
        count = self.params.smem.size_bytes // _CHUNK
        lines = []
        reader = cocotb.start_soon(self._ask(range(0, count, _LANES)))
        for _ in range(0, count, _LANES):
            lines.append((await self.read_data.get()).as_bits().to_bytes(_LANES * _CHUNK, "little"))
        await reader
        return np.frombuffer(b"".join(lines), np.uint8)

    async def _ask(self, firsts):
        for first in firsts:
            chunks = [first + lane for lane in range(_LANES)]
            await self.reads.send({"lanes": (1 << _LANES) - 1, "chunks": chunks})

    async def compare(self, but=None):
        """Every byte of both memories, guard bands included, is what the golden machine has.

        ``but`` marks bytes of shared memory that may have any value: the golden machine takes them over. Every write
        must have been answered.
        """
        image = await self.image()
        if but is not None:
            self.machine.smem[but] = image[but]
        _compare("shared", image, self.machine.smem)
        _compare("global", np.frombuffer(self.memory, np.uint8), self.machine.gmem.data)

    async def register(self, name):
        """Value of a register, by its name in ``golden.spec``."""
        return await self.registers.read_dword(REGISTER[name].offset)

    async def set_register(self, name, **fields):
        """Writes a register: fields that are left out are zero."""
        await self.registers.write_dword(REGISTER[name].offset, REGISTER[name].format.pack(**fields))

    async def error_record(self):
        """The error record as the registers show it, and their count of errors; both are cleared."""
        record = [await self.register(name) for name in ("error", "error_value_lo", "error_value_hi")]
        count = await self.register("error_count")
        await self.set_register("control", clear_error=1)
        return ErrorRecord.of_registers(*record), count

    def check_bus(self):
        """The monitor has seen no violation and no endless wait."""
        violations = Rule.decode(int(self.dut.violations.value))
        late = Wait.decode(int(self.dut.late.value))
        assert not violations, f"AXI rules broken: {', '.join(rule.name for rule in violations)}"
        assert not late, f"AXI waits too long: {', '.join(wait.name for wait in late)}"

    async def _watch(self):
        """Collects the device's notices; never returns."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if int(dut.done_valid.value) and not int(dut.rst.value):
                self.done[int(dut.done_tag.value)] = bool(int(dut.done_error.value))


def _compare(name, seen, expected):
    wrong = np.flatnonzero(seen != expected)
    if len(wrong):
        first = wrong[0]
        values = f"{seen[first]:#04x}, not {expected[first]:#04x}"
        raise AssertionError(f"{len(wrong)} bytes of {name} memory differ, the first at {first:#x}: {values}")
