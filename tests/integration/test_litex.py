"""A core as a peripheral of LiteX: the system's Verilog is generated, and Verilator reads it with the core's."""

import importlib.util
import re
import subprocess

import pytest

from tilewright.sim.hdl.build import verilator_root

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("litex") is None, reason="needs pip install 'tilewright[litex]'"
)


# Migen and LiteX warn of what Python has deprecated.
@pytest.mark.filterwarnings("ignore")
def test_litex_makes_a_system_with_a_core(tmp_path, monkeypatch):
    from litex.build.generic_platform import Pins
    from litex.build.sim import SimPlatform
    from litex.soc.integration.export import get_mem_header, get_soc_header
    from litex.soc.integration.soc_core import SoCCore
    from migen import ClockDomain, Module

    from tilewright.system.litex import add_core

    class Clock(Module):
        def __init__(self, pin):
            self.clock_domains.cd_sys = ClockDomain()
            self.comb += self.cd_sys.clk.eq(pin)

    monkeypatch.chdir(tmp_path)  # where LiteX leaves the contents of memories
    platform = SimPlatform("SIM", [("sys_clk", 0, Pins(1))])
    soc = SoCCore(platform, 1e6, cpu_type="vexriscv", integrated_rom_size=0x8000, integrated_main_ram_size=0x10000,
                  uart_name="stub")  # fmt: skip
    soc.submodules.crg = Clock(platform.request("sys_clk"))
    core = add_core(soc, tmp_path, preset="unit", engines=("tmau",))
    soc.finalize()
    platform.get_verilog(soc, name="soc").write(str(tmp_path / "soc.v"))
    assert "TILEWRIGHT_BASE" in get_mem_header(soc.mem_regions)
    assert "TILEWRIGHT_INTERRUPT" in get_soc_header(soc.constants)
    assert {"tw_core.v", "tw_core.h", "tilewright.h", "tilewright_model.c"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert core.register_bytes == soc.bus.regions["tilewright"].size

    # The core runs with the system: an input that nothing drives is no error to Verilator.
    instance = re.search(r"^tw_core tw_core\(.*?^\);", (tmp_path / "soc.v").read_text(), re.MULTILINE | re.DOTALL)[0]
    assert re.search(r"\.clk +\(sys_clk\w*\)", instance) and re.search(r"\.rst +\(sys_rst\)", instance)

    root = verilator_root()
    sources = [str(name) for name, *_ in platform.sources]
    command = [root / "bin/verilator_bin", "--lint-only", "-Wno-fatal", "--top-module", "soc", tmp_path / "soc.v"]
    done = subprocess.run([*command, *sources], env={"VERILATOR_ROOT": str(root)}, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    # The rest of the warnings is on the style of what LiteX writes.
    assert not re.findall("%Error.*|%Warning-PIN.*|.*port connection.*", done.stderr)
