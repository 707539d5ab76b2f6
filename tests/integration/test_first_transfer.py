"""The first transfer of docs/integration.md: its words against the golden model, its bench against the RTL."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.golden import GlobalMemory, Machine, TensorMap
from tilewright.sim.asm.tmau import assemble
from tilewright.sim.hdl.tops import top_component
from tilewright.spec import BarrierOp
from tilewright.tools.package.choice import Choice
from tilewright.tools.package.fusesoc import listing
from tilewright.tools.package.ports import ports_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (
    (ROOT / "docs" / "integration.md").read_text(encoding="utf-8").split("## A first transfer\n")[1].split("\n## ")[0]
)
BENCH = (ROOT / "tb" / "first_transfer.v").read_text(encoding="utf-8")
TENSOR = TensorMap(element="u8", address=0x2000, size=(64, 16), stride=(64,), box=(32, 4))
COMMAND = "copy_tensor.tiles.2d.shared,global 0x1000 (40,14) 0x100 0x40 tag=7"

#: Global memory as the bench fills it, and the four operations on the barrier in its order.
MEMORY = np.array([(i ^ i >> 8) & 0xFF for i in range(16384)], np.uint8)
OPERATIONS = ((BarrierOp.INIT, 1), (BarrierOp.EXPECT_TX, 128), (BarrierOp.ARRIVE, 1), (BarrierOp.TRY_WAIT, 0))


def rows(first):
    """The second cells, numbers, of the page's rows whose first cell is as said."""
    return [int(word, 16) for word in re.findall(rf"^ +\| {first} \| (0x\w+) \|", PAGE, re.MULTILINE)]


def items():
    """The operations as the words of preset ``unit``."""
    ports = {port.name: port for port in ports_of(top_component("core", "unit", engines=["tmau"]))}
    lsb = {field.name: field.lsb for field in ports["barriers_payload"].fields}
    return [op << lsb["op"] | 0x40 << lsb["address"] | value << lsb["value"] for op, value in OPERATIONS]


def run(folder, bench):
    """What the bench prints."""
    if shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    (folder / "bench.v").write_text(bench)
    top = Choice("core", "unit", engines=("tmau",))
    (folder / "dut.v").write_text(listing(top, top.verilog()))
    subprocess.run(["iverilog", "-g2005", "-o", "first", "bench.v", "dut.v"], cwd=folder, check=True)
    return subprocess.run(["vvp", "first"], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_words_of_the_page_are_those_of_the_golden_model():
    packed = np.frombuffer(bytes(TENSOR.pack()), "<u8")
    written = dict(re.findall(r"^ +\| (0x10\w\w) \| (0x\w{16}) \|", PAGE, re.MULTILINE))
    assert {int(at, 16): int(word, 16) for at, word in written.items()} == {
        0x1000 + 8 * i: int(word) for i, word in enumerate(packed) if word
    }
    (command,) = assemble(COMMAND)
    assert sum(word << 64 * i for i, word in enumerate(rows(r"\d+–\d+"))) == command
    assert [int(word, 16) for word in re.findall(r"^ +\| (0x\w{9}) \|", PAGE, re.MULTILINE)] == items()
    assert COMMAND in PAGE
    source = 'TensorMap(element="u8", address=0x2000, size=(64, 16), stride=(64,), box=(32, 4)).pack()'
    assert source in PAGE and bytes(eval(source)) == bytes(TENSOR.pack())


def test_the_bench_has_the_words_of_the_page():
    words = [int(word, 16) for word in re.findall(r"64'h(\w{16})", BENCH)]
    assert words == rows(r"0x10\w\w") + rows(r"\d+–\d+")[::-1]
    assert [int(word, 16) for word in re.findall(r"operate\(36'h(\w{9}), \d\)", BENCH)] == [*items(), items()[-1]]


def test_the_bench_passes_and_shared_memory_is_that_of_the_golden_model(tmp_path):
    printed = run(tmp_path, BENCH)
    machine = Machine(GlobalMemory(16384), np.zeros(4096, np.uint8))
    machine.gmem.write(0, MEMORY)
    machine.gmem.write(0x1000, TENSOR.pack())
    machine.execute(assemble(COMMAND)[0])
    read = np.array([int(word, 16) for word in re.findall(r"^smem \w+: (\w+)$", printed, re.MULTILINE)], "<u4")
    assert read.tobytes() == machine.smem[0x100:0x180].tobytes()
    assert "read id 0 address 000023a0 beats 2\nread id 0 address 000023e0 beats 2\n" in printed
    assert "done tag 7 error 0\nflip 040\nbarrier 000000204 answer 1\n" in printed
    assert printed.endswith("PASS\n")


@pytest.mark.parametrize(
    ("old", "new", "end"),
    [
        # A row too high, a descriptor of another version, and one byte more than will land.
        ("64'h0000000E00000028", "64'h0000000D00000028", "FAIL: 72 wrong\n"),
        ("memory[address + lane];", "memory[address + lane] ^ 8'h01;", "FAIL: no answer in 2000 cycles\n"),
        ("36'h000400202, 0", "36'h000408202, 0", "FAIL: no answer in 2000 cycles\n"),
    ],
)
def test_the_bench_can_fail(tmp_path, old, new, end):
    assert BENCH.count(old) == 1
    assert run(tmp_path, BENCH.replace(old, new)).endswith(end)
