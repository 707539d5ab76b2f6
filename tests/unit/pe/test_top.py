"""The bare processing engine: a program over AXI4-Lite alone, and a page that a TMAU outside moves."""

from tilewright.golden.pe.machine import instruction_word
from tilewright.golden.spec import COMMAND, Opcode
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import Operation
from tilewright.golden.spec.pe.registers import PE_REGISTERS, Put
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.top import Pe
from tilewright.sim.pysim.axi_lite import read_word, write_word
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import receive, send

REGISTERS = {register.name: register for register in PE_REGISTERS}
PUT_BUSY = REGISTERS["status"].format.pack(put_busy=1)


class Driver:
    """Reads and writes registers by name."""

    def __init__(self, ctx, axi):
        self.ctx, self.axi = ctx, axi

    async def read(self, name):
        data, response = await read_word(self.ctx, self.axi, REGISTERS[name].offset)
        assert response == Response.OKAY
        return data

    async def write(self, name, **fields):
        register = REGISTERS[name]
        await write_word(self.ctx, self.axi, register.offset, register.format.pack(**fields))

    async def put(self, kind, word, words, index=0):
        for number in range(words):
            await self.write(f"data{number}", word=word >> 32 * number & 0xFFFF_FFFF)
        await self.write("put", kind=kind, index=index)


def test_program_and_page_over_registers_alone():
    dut = Pe(PE_PRESETS["unit"])
    program = [
        instruction_word(Operation.MOV, rd=3, imm=7),
        instruction_word(Operation.LD, rd=0, n=1, ur=5, rf=3),  # ur5 names no segment
        instruction_word(Operation.HALT),
    ]

    async def run(ctx):
        driver = Driver(ctx, dut.s_axil)
        ctx.set(dut.smem.scatter_idle, 1)
        await driver.write("irq_enable", halt=1)
        for word in program:
            assert not ctx.get(dut.irq)
            await driver.put(Put.INSTRUCTION, word, 4)
        await ctx.tick().until(dut.irq)
        assert await driver.read("error") == REGISTERS["error"].format.pack(code=PeError.UNIFORM, register=5)
        assert await driver.read("error_number") == 1
        assert await driver.read("instructions") == len(program)

        await send(ctx, dut.instructions, program[:1])
        ctx.set(dut.smem.bank_conflict, 1)
        await ctx.tick()
        ctx.set(dut.smem.bank_conflict, 0)
        assert await driver.read("instructions") == len(program) + 1
        assert await driver.read("bank_conflicts") == 1

        await driver.write("page_address", address=256)
        await driver.put(Put.PAGE_IN, COMMAND.pack(opcode=Opcode.LOAD, smem=256), 16, index=9)
        (moved,), _ = await receive(ctx, dut.page_moves, 1)
        assert (moved.tag, moved.smem) == (PAGER_TAG + 9, 256)
        assert await driver.read("status") & PUT_BUSY
        ctx.set(dut.page_moved, {"valid": 1, "tag": PAGER_TAG + 9, "error": 0})
        await ctx.tick()
        ctx.set(dut.page_moved.valid, 0)
        await ctx.tick().repeat(4)
        assert not await driver.read("status") & PUT_BUSY

    simulate(dut, run)
