"""FuseSoC core files (CAPI2): one for each top, and one with a generator that makes a top by its parameters."""

import importlib.metadata
import sys

__all__ = ["core_file", "generator_files"]

_TOP = """\
CAPI=2:
# Made by `tilewright verilog`. `fusesoc --cores-root . run {vlnv}` checks it with Verilator.
name: "{vlnv}"
description: "{description}"
filesets:
  rtl:
    files: [{name}.v]
    file_type: verilogSource
  waivers:
    files: [{name}.vlt]
    file_type: vlt
  ipxact:
    files: [{name}.xml]
    file_type: user
  header:
    files: [{name}.h]
    file_type: user
targets:
  # A core that depends on this one gets the file sets of this target; run alone it is the lint.
  default: &default
    description: "All files; run alone, Verilator with all warnings"
    filesets: [rtl, waivers, ipxact, header]
    toplevel: {name}
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
  lint:
    <<: *default
    description: "Verilator with all warnings"
  sim:
    description: "The top alone, compiled; depend on this core for a bench of your own"
    filesets: [rtl, ipxact, header]
    toplevel: {name}
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005]
  synth:
    description: "Yosys for a Lattice ECP5; --arch names another family"
    filesets: [rtl, ipxact, header]
    toplevel: {name}
    flow: generic
    flow_options:
      tool: yosys
      arch: ecp5
      output_format: json
"""

_GENERATOR = """\
CAPI=2:
# Made by `tilewright tool`. Parameters are the options of `tilewright verilog`, without their dashes.
name: "tilewright:engines:generator:{version}"
description: "Makes a top by its parameters"
generators:
  tilewright:
    interpreter: {python}
    command: tilewright_generator.py
    description: "top, preset, with, without, cores, processors, name, and any other option of `tilewright verilog`"
"""
_SCRIPT = """\
# Made by `tilewright tool` for FuseSoC, which runs it with the Python that has Tilewright.
import os
import sys

os.environ.setdefault("TILEWRIGHT_BUILD", {build!r})

from tilewright.sim.package.generator import main

sys.exit(main(sys.argv[1]))
"""


def core_file(name, description, version):
    """Text of ``name.core``.

    Parameters
    ----------
    name : str
        Of the module and its files.
    description : str
        One sentence, without quotation marks.
    version : str
        Of Tilewright.
    """
    return _TOP.format(vlnv=f"tilewright:engines:{name}:{version}", name=name, description=description)


def generator_files(build):
    """The texts of the core file with the generator and of its script, by the names of their files.

    Parameters
    ----------
    build : Path
        Folder in which made Verilog is kept, unless ``TILEWRIGHT_BUILD`` says otherwise.
    """
    version = importlib.metadata.version("tilewright")
    return {
        "tilewright_generator.core": _GENERATOR.format(version=version, python=sys.executable),
        "tilewright_generator.py": _SCRIPT.format(build=str(build)),
    }
