"""A processor that has AXI4-Lite and nothing else: a load, its wait, a store and its end, by the windows alone."""

import numpy as np

from support.selection import cases
from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.core import CORE_PRESETS, Core, CoreParams
from tilewright.hw.core.params import ProgramParams
from tilewright.hw.tmau import TMAU_PRESETS
from tilewright.spec import BarrierOp, Error, Opcode
from tilewright.spec.cluster import CLUSTER_REGISTERS, ClusterError
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS, COMMAND_WINDOW_REGISTERS, TMAU_REGISTERS
from tilewright.verify.pysim.axi import AxiMemory, read_word, write_word
from tilewright.verify.pysim.simulate import elaborated, simulate

BARRIER = 2048
WINDOWS = {"command_window": True, "barrier_window": True}
#: Nothing that a load and a store do without.
TMAU = CoreParams(TMAU_PRESETS["unit"].replace(features=("stores",), **WINDOWS))
CORE = CORE_PRESETS["unit"].replace(tmau=CORE_PRESETS["unit"].tmau.replace(**WINDOWS), program=ProgramParams())

COMMAND = {register.name: register for register in COMMAND_WINDOW_REGISTERS}
BARRIERS = {register.name: register for register in BARRIER_WINDOW_REGISTERS}
REGISTERS = {register.name: register for register in TMAU_REGISTERS}


class Processor:
    """Reads and writes of the AXI4-Lite port of a top."""

    def __init__(self, ctx, dut):
        self._ctx, self._dut = ctx, dut

    def _address(self, region, register):
        return self._dut.regions[region].base + register.offset

    async def read(self, region, register):
        """Fields of a register."""
        word, response = await read_word(self._ctx, self._dut.s_axil, self._address(region, register))
        assert response == Response.OKAY
        return register.format.unpack(word)

    async def write(self, region, register, **fields):
        await write_word(self._ctx, self._dut.s_axil, self._address(region, register), register.format.pack(**fields))

    async def send(self, command):
        for number in range(16):
            await self.write("commands", COMMAND[f"word{number}"], word=command >> 32 * number & 0xFFFF_FFFF)

    async def operate(self, op, value):
        await self.write("barriers", BARRIERS["operation"], op=op, value=value)
        return await self.read("barriers", BARRIERS["result"])

    async def ends(self, before):
        """What ended, when one more has than ``before``."""
        while (ended := await self.read("commands", COMMAND["ended"]))["count"] == before:
            pass
        return ended


@cases("params", [TMAU], [CORE], ids=["tmau", "core"])
def test_by_windows_alone(params):
    dut = elaborated(Core, params)
    gmem = np.random.default_rng(1).integers(0, 256, 8192, np.uint8)
    tmap = TensorMap(element="u8", size=(64, 8), stride=(64,), box=(64, 8), address=4096)
    gmem[:128] = np.frombuffer(tmap.pack(), np.uint8)
    stored, shared = gmem.copy(), np.zeros(params.smem.size_bytes, np.uint8)
    load = {"descriptor": 0, "smem": 1024, "signal": 1, "barrier": BARRIER, "tag": 1}
    store = {"opcode": Opcode.STORE, "descriptor": 0, "smem": 1024, "coords": (0, 3), "tag": 7}
    machine = Machine(Memory(stored), shared)
    for command in ({**load, "signal": 0, "barrier": 0}, store):
        machine.execute(command_word(**command))

    async def run(ctx):
        cpu = Processor(ctx, dut)
        built = await cpu.read("tmau", REGISTERS["features"])
        assert (built["command_window"], built["barrier_window"]) == (1, 1)
        await cpu.write("barriers", BARRIERS["address"], address=BARRIER)
        for op, value in ((BarrierOp.INIT, 1), (BarrierOp.EXPECT_TX, 512), (BarrierOp.ARRIVE, 1)):
            assert await cpu.operate(op, value) == {"done": 0, "error": 0}
        assert await cpu.operate(BarrierOp.TRY_WAIT, 0) == {"done": 0, "error": 0}
        await cpu.send(command_word(**load))
        while not (await cpu.operate(BarrierOp.TRY_WAIT, 0))["done"]:
            pass
        assert await cpu.ends(0) == {"tag": 1, "error": 0, "count": 1}
        for at in range(1024, 1024 + 64, 4):
            word, _ = await read_word(ctx, dut.s_axil, dut.regions["smem"].base + at)
            assert word.to_bytes(4, "little") == shared[at : at + 4].tobytes()
        await cpu.send(command_word(**store))
        assert await cpu.ends(1) == {"tag": 7, "error": 0, "count": 2}
        assert (gmem == stored).all()
        # What is refused is reported as if it had come at the ports.
        await cpu.send(command_word(**load | {"smem": 64, "tag": 9}))
        assert await cpu.ends(2) == {"tag": 9, "error": Error.SMEM_ALIGNMENT, "count": 3}
        assert await cpu.operate(BarrierOp.ARRIVE, 5) == {"done": 0, "error": 1}
        assert (await cpu.read("tmau", REGISTERS["error"]))["code"] == Error.SMEM_ALIGNMENT

    memory = AxiMemory(dut.m_axi, gmem)
    simulate(dut, run, background=[memory.serve, memory.serve_writes], deadline=60_000)


def test_a_stopped_core_refuses_what_is_written():
    """Its window does not wait, as the port does: the bus of the processor would stand still."""
    dut = elaborated(Core, TMAU.replace(tmau=TMAU.tmau.replace(cores=2)))
    stop = next(register for register in CLUSTER_REGISTERS if register.name == "stop")

    async def run(ctx):
        cpu = Processor(ctx, dut)
        await cpu.write("tmau", stop, **{stop.fields[0].name: 1})
        for tag in range(1, 6):
            await cpu.send(command_word(tag=tag))
            assert await cpu.ends(tag - 1) == {"tag": tag, "error": ClusterError.STOPPED, "count": tag}

    simulate(dut, run)
