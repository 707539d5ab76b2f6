"""The whole engine: the number of the core, and registers alone.

Programs, products and pages are run by tests/integration/pe and tests/integration/test_core.py.
"""

from support.registers import Registers
from support.streams import pulse
from tilewright.golden.pe.checks import instruction_word
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.top import Pe, PeUnit
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec.pe import PE_REGISTERS, SEGMENT, Operation, PeError, Put, SegmentElement
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send

# Neither program multiplies: what remains of the array is small.
PARAMS, CORES, ADDRESS = PE_PRESETS["unit"].replace(types=("i8",)), 4, 1024
WORDS = {"element": SegmentElement.U32, "rank": 1, "size": [8], "page_log2": [3]}


#: One program for all cores: words 0 to 3 are the number of the core, words 4 to 7 are another number in core 2 alone.
BY_NUMBER = assemble_program("""
    movu ur1, 4
    mov r4, tid
    mov r5, core
    st r5, ur1:rf4:0x0, 1
    setp.eq p1, r5, 2
    mov r6, 0x10
    @p1, mov r6, 0x20
    st r6, ur1:rf4:0x4, 1
    halt
""")


def test_one_program_acts_by_the_number_of_its_core():
    dut, written = elaborated(PeUnit, PARAMS, CORES), {}
    segment = SEGMENT.pack(**WORDS, base=ADDRESS)

    async def run(ctx):
        ctx.set(dut.smem.scatter_idle, 1)
        await send(ctx, dut.processor.segments, [{"index": 4, "word": segment}])
        for core in range(CORES):
            written.clear()
            ctx.set(dut.core_number, core)
            await send(ctx, dut.processor.instructions, BY_NUMBER)
            await ctx.tick().until(dut.processor.halted)
            results = [written[ADDRESS + byte] for byte in range(32)]
            assert results[::4] == [core] * 4 + [0x20 if core == 2 else 0x10] * 4
            assert not any(results[byte] for byte in range(32) if byte % 4)

    async def store(ctx):
        while True:
            (item,), _ = await receive(ctx, dut.smem.scatter, 1)
            for lane in range(8):
                for byte in range(16):
                    if item.strobes[lane] >> byte & 1:
                        written[16 * item.chunks[lane] + byte] = item.data[lane] >> 8 * byte & 0xFF

    simulate(dut, run, background=[store])


def test_a_program_over_registers_alone():
    dut = Pe(PARAMS)
    program = [
        instruction_word(Operation.MOV, rd=3, imm=7),
        instruction_word(Operation.LD, rd=0, n=1, ur=5, rf=3),  # ur5 names no segment
        instruction_word(Operation.HALT),
    ]

    async def run(ctx):
        driver = Registers(ctx, dut.s_axil, PE_REGISTERS)
        ctx.set(dut.smem.scatter_idle, 1)
        await driver.write("irq_enable", halt=1)
        for instruction in program:
            assert not ctx.get(dut.irq)
            for number in range(4):
                await driver.write(f"data{number}", word=instruction >> 32 * number & 0xFFFF_FFFF)
            await driver.write("put", kind=Put.INSTRUCTION)
        await ctx.tick().until(dut.irq)
        assert await driver.read("error") == driver.named["error"].format.pack(code=PeError.UNIFORM, register=5)
        assert await driver.read("error_number") == 1
        assert await driver.read("instructions") == len(program)

        await send(ctx, dut.instructions, program[:1])
        await pulse(ctx, dut.smem.bank_conflict)
        assert await driver.read("instructions") == len(program) + 1
        assert await driver.read("bank_conflicts") == 1

    simulate(dut, run)
