"""A FuseSoC core file (CAPI2) for one top: its files, and targets to lint and to compile it."""

__all__ = ["core_file"]

_TEMPLATE = """\
CAPI=2:
# Made by `tilewright verilog`. `fusesoc --cores-root . run --target lint {vlnv}` checks it.
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
targets:
  default:
    filesets: [rtl, ipxact]
    toplevel: {name}
  lint:
    description: "Verilator with all warnings"
    filesets: [rtl, waivers]
    toplevel: {name}
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
  sim:
    description: "The top alone, compiled; depend on this core for a bench of your own"
    filesets: [rtl, ipxact]
    toplevel: {name}
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005]
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
    return _TEMPLATE.format(vlnv=f"tilewright:engines:{name}:{version}", name=name, description=description)
