"""The array behind scripts, logs and global memory: byte strobes mean the same in Python and in both simulators."""

import random
import shutil

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.harness.drivers import ScriptDriver, ScriptRowLayout
from tilewright.sim.hdl.build import SIMULATORS
from tilewright.sim.hdl.packing import pack_rows, row_bytes
from tilewright.sim.hdl.simulation import Simulation
from tilewright.sim.hdl.testbench import Array, make_design
from tilewright.sim.hdl.word_array import WordArray
from tilewright.verify.pysim.simulate import simulate

BYTES = 9  # more than a machine word
DEPTH = 8
WRITE = data.StructLayout({"address": 8, "data": 8 * BYTES, "strobe": BYTES})


def _writes(rng, count):
    fields = {name: field.width for name, field in WRITE}
    for _ in range(count):
        yield {name: rng.getrandbits(width) for name, width in fields.items()} | {"address": rng.randrange(DEPTH)}


def _expected(writes):
    contents = np.zeros((DEPTH, BYTES), np.uint8)
    for write in writes:
        for byte in range(BYTES):
            if write["strobe"] >> byte & 1:
                contents[write["address"], byte] = write["data"] >> 8 * byte & 255
    return contents


class _Writer(wiring.Component):
    """A driver that writes into an array."""

    start: In(1)
    count: In(7)
    finished: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.driver = driver = ScriptDriver(WRITE, depth=64, number=0)
        m.submodules.words = words = WordArray(width=8 * BYTES, depth=DEPTH)
        write = driver.o.payload
        m.d.comb += [
            driver.start.eq(self.start),
            driver.count.eq(self.count),
            driver.enable.eq(1),
            driver.idle.eq(1),
            driver.o.ready.eq(1),
            words.write_enable.eq(driver.o.valid),
            words.write_address.eq(write.address),
            words.write_data.eq(write.data),
            words.write_strobe.eq(write.strobe),
            self.finished.eq(driver.finished),
        ]
        return m


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_strobes(simulator):
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    row = ScriptRowLayout(WRITE)
    arrays = {
        "script": Array("driver.script.array.words", 8 * row_bytes(row), 64),
        "words": Array("words.array.words", 8 * BYTES, DEPTH),
    }
    writes = list(_writes(random.Random(5), 40))
    with Simulation(make_design(_Writer(), arrays), simulator=simulator) as simulation:
        simulation.load("script", 0, pack_rows(row, [{"item": write} for write in writes]))
        simulation.controls["count"] = len(writes)
        _, dumped = simulation.exchange(reset=True, start=True, limit=100, drain=2, dump={"words": (0, DEPTH)})
    assert (dumped["words"] == _expected(writes)).all()


def test_strobes_in_python():
    dut = WordArray(width=8 * BYTES, depth=DEPTH)
    writes = list(_writes(random.Random(6), 40))

    async def testbench(ctx):
        ctx.set(dut.write_enable, 1)
        for write in writes:
            for name, value in write.items():
                ctx.set(getattr(dut, f"write_{name}"), value)
            await ctx.tick()
        words = [ctx.get(dut.contents[index]) for index in range(DEPTH)]
        assert words == [int.from_bytes(row.tobytes(), "little") for row in _expected(writes)]

    simulate(dut, testbench)


def test_everything_is_written_if_nobody_drives_the_strobes():
    dut = WordArray(width=16, depth=2)

    async def testbench(ctx):
        ctx.set(dut.write_enable, 1)
        ctx.set(dut.write_data, 0xABCD)
        await ctx.tick()
        assert ctx.get(dut.contents[0]) == 0xABCD

    simulate(dut, testbench)


def test_width_must_be_bytes():
    with pytest.raises(ValueError, match=r"^the width of a word array must be a multiple of 8, not 12$"):
        WordArray(width=12, depth=2)
