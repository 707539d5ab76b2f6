"""Ports of a design under names of their own: every field, in a waveform and in the save files beside it."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden import command_word
from tilewright.hw.lib.layouts import command_layout
from tilewright.sim.harness.streams import Streams
from tilewright.sim.hdl.simulation import Simulation
from tilewright.sim.hdl.testbench import make_design
from tilewright.sim.hdl.tops import top_component
from tilewright.spec import COMMAND, FORMATS

#: Keywords that a field might be called; no tool would take them for a port.
KEYWORDS = {"input", "output", "begin", "end", "case", "default", "reg", "wire", "module", "signed", "time", "event",
            "repeat", "wait", "force", "type", "bit", "byte", "int", "do", "this", "var", "with", "release", "and",
            "or", "xor", "not", "for", "if", "else", "table"}  # fmt: skip


class Sink(wiring.Component):
    """Takes commands, and pairs."""

    commands: In(stream.Signature(command_layout()))
    pairs: Out(stream.Signature(data.StructLayout({"low": 4, "several": data.ArrayLayout(3, 2)})))
    seen: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.commands.ready.eq(1), self.seen.eq(self.commands.valid), self.pairs.payload.several[1].eq(5)]
        return m


class Bench(wiring.Component):
    """Issues one command."""

    start: In(1)
    finished: Out(1)

    def __init__(self, word):
        super().__init__()
        self._word, self.sink = word, Sink()
        self.streams = Streams(self.sink)

    def elaborate(self, platform):
        m = Module()
        m.submodules += [self.sink]
        m.submodules.streams = self.streams
        m.d.comb += [self.sink.commands.payload.eq(self._word), self.sink.commands.valid.eq(self.start)]
        m.d.sync += self.finished.eq(self.start)
        return m


def signals_of(path):
    """Names in a VCD with their widths and last values."""
    scope, names, values = [], {}, {}
    for line in path.read_text().splitlines():
        match line.split():
            case ["$scope", _, name, *_]:
                scope.append(name)
            case ["$upscope", *_]:
                scope.pop()
            case ["$var", _, width, code, name, *_]:
                names[".".join([*scope, name])] = code, int(width)
            case [value, code] if value.startswith("b"):
                values[code] = value[1:]
            case [value] if re.fullmatch(r"[01xz]\S+", value):
                values[value[1:]] = value[0]
    return {name: (width, values.get(code)) for name, (code, width) in names.items()}


def test_every_name_of_the_save_files_is_in_the_waveform(tmp_path):
    bench = Bench(command_word("copy_block", source=0x123, size=48, destination=7, signal=1, barrier=24))
    design = make_design(bench, {})
    signals = {
        group: {f"streams.{group}.{name}": (len(value), value.shape().signed) for name, value in fields.items()}
        for group, fields in bench.streams.groups.items()
    }
    design = replace(design, verilog=design.verilog + bench.streams.verilog(), signals=signals)
    path = tmp_path / "waves.vcd"
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    with Simulation(design, simulator=simulator, waves=path) as simulation:
        simulation.exchange(reset=True, start=True, limit=3)
    found = signals_of(path)

    save = (tmp_path / "waves.gtkw").read_text()
    assert save.startswith(f'[dumpfile] "{path}"\n')
    shown = re.findall(r"^(testbench\.\S+?)(?:\[(\d+):0\])?$", save, re.MULTILINE)
    listed = re.findall(r"^variable_add (\S+)$", (tmp_path / "waves.sucl").read_text(), re.MULTILINE)
    assert [name for name, _ in shown] == listed
    assert len(listed) == sum(map(len, signals.values())) > 60
    for name, last in shown:
        assert found[name][0] == int(last or 0) + 1, name

    place = "testbench.dut.streams."
    for name, value in (("commands_block.source", 0x123), ("commands_block.size", 48), ("commands.barrier", 24),
                        ("pairs.several_1", 5), ("pairs.low", 0)):  # fmt: skip
        assert int(found[place + name][1], 2) == value


@pytest.mark.parametrize(
    ("top", "engines", "groups"),
    [
        ("core", ["tmau"], {"commands", "done", "m_axi", "s_axil", "reads", "barriers", "flip"}),
        ("core", ["pe"], {"instructions", "instructions_mm", "segments", "pages", "fault", "barriers"}),
        ("core", ["conv"], {"jobs", "jobs_convolution", "job_end"}),
        ("core", ["tmau", "pe", "conv", "program"], {"commands", "instructions", "jobs", "m_axi", "s_axil"}),
        ("cluster", (), {"commands0", "commands1", "commands1_lanes", "done0", "m_axi"}),
    ],
)
def test_names_of_every_top(top, engines, groups):
    streams = Streams(top_component(top, "unit", engines=engines))
    assert groups <= streams.groups.keys()
    for fields in streams.groups.values():
        assert all(re.fullmatch(r"[a-z]\w*", name) and name not in KEYWORDS for name in fields)
    for group in (name for name in groups if name.startswith("commands")):
        for fmt in FORMATS.values():
            view = streams.groups[group.partition("_")[0] + ("" if fmt is COMMAND else f"_{fmt.name}")]
            assert all({field.name, f"{field.name}0", f"{field.name}_"} & view.keys() for field in fmt.fields)


def test_one_name_for_what_is_no_stream():
    component = SimpleNamespace(signature=wiring.Signature({"irq": Out(1), "halted": Out(1)}), irq=1, halted=0)
    assert list(Streams(component).groups) == ["ports"]
