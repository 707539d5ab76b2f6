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
  default: &default
    filesets: [rtl, "tool_verilator? (waivers)", ipxact]
    toplevel: {name}
  lint:
    <<: *default
    description: "Verilator with all warnings"
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wall]
  sim:
    <<: *default
    description: "The top alone, compiled; depend on this core for a bench of your own"
    default_tool: icarus
    tools:
      icarus:
        iverilog_options: [-g2005]
      verilator:
        mode: cc
        exe: "false"
        verilator_options: [-Wno-fatal]
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
