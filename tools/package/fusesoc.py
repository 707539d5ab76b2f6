"""The notice of generated files, Verilog with grouped ports, and for FuseSoC core files and a generator of tops."""

import importlib.metadata
import re
import sys
import textwrap
from itertools import groupby
from pathlib import Path

from .ports import interface_docs, ports_of

__all__ = ["core_file", "described", "generator_files", "listing", "main", "notice", "options"]


def notice(choice):
    """The lines of the notice, without comment marks; no date, so that the same options make the same files."""
    package = importlib.metadata.metadata("tilewright")
    component = choice.component()
    return [
        f"{choice.name}: {type(component).__doc__.splitlines()[0]}",
        f"Made by Tilewright {package['Version']}; do not edit.",
        f"Options: {choice.options}",
        f"SPDX-License-Identifier: {package['License-Expression']}",
    ]


def described(choice):
    """One sentence without quotation marks: the top, and the options that make it."""
    return f"Tilewright's {type(choice.component()).__name__}, made with {choice.options}"


#: The declaration of a port by Yosys: its direction, then its kind.
_PORT = re.compile(
    r"^  (?P<way>input|output) (?P<range>\[[^]]+\] )?(?P<name>\w+);\n"
    r"  (?P<kind>wire|reg) (?P=range)?(?P=name)(?P<value> = [^;]+)?;\n",
    re.MULTILINE,
)
_LINE = 120


def listing(choice, verilog):
    """The text ``verilog`` of a :class:`~.choice.Choice`, with the notice, and with its ports grouped by interface."""
    says = "".join(f"// {line}\n" for line in notice(choice))
    module = re.search(rf"^module {choice.name}\([^)]*\);\n(.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL)
    declared = {match["name"]: match for match in _PORT.finditer(module[1])}
    ports = _ports(choice.component(), declared)
    body = _PORT.sub("", module[1])
    return f"{says}{verilog[: module.start()]}module {choice.name}(\n{ports}\n);\n{body}{verilog[module.end(1) :]}"


def _ports(component, declared):
    """The ports of a module, with a comment before each interface; ``declared`` has their declarations by name."""
    docs, ports = interface_docs(component), ports_of(component)
    if {port.name for port in ports} != set(declared):
        raise AssertionError(f"the ports of {type(component).__name__} are not those of its Verilog")
    lines = []
    for interface, group in groupby(ports, key=lambda port: port.bundle):
        lines += ["", *_comment(interface, docs[interface])]
        lines += [_declaration(declared[port.name]) for port in group]
    # The last port has no comma.
    return "\n".join(lines[1:])[:-1]


def _comment(interface, meaning):
    return textwrap.wrap(
        f"{interface}: {meaning}".replace("`", ""), _LINE, initial_indent="  // ", subsequent_indent="  // "
    )


def _declaration(match):
    return f"  {match['way']:<6} {match['kind']} {match['range'] or ''}{match['name']}{match['value'] or ''},"


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

from tilewright.tools.package.fusesoc import main

sys.exit(main(sys.argv[1]))
"""


def core_file(name, description, version):
    """Text of ``name.core``.

    Parameters
    ----------
    name : str
        Name of the module and its files.
    description : str
        One sentence, without quotation marks.
    version : str
        Version of Tilewright.
    """
    return _TOP.format(vlnv=f"tilewright:engines:{name}:{version}", name=name, description=description)


def generator_files(build):
    """The texts of the core file with the generator, and of its script, by file name.

    Parameters
    ----------
    build : Path
        Folder in which generated Verilog is kept, unless ``TILEWRIGHT_BUILD`` names another one.
    """
    version = importlib.metadata.version("tilewright")
    return {
        "tilewright_generator.core": _GENERATOR.format(version=version, python=sys.executable),
        "tilewright_generator.py": _SCRIPT.format(build=str(build)),
    }


def main(path):
    """Makes the top that the YAML file ``path`` of FuseSoC names, in the current folder; returns the exit status."""
    import yaml  # FuseSoC has it, and the plain package does not

    from ..cli.main import main as tilewright

    asked = yaml.safe_load(Path(path).read_text())
    parameters = asked["parameters"] or {}
    if "top" not in parameters:
        print(f"tilewright: the generator's parameters must name a top, and are {parameters}")
        return 2
    status = tilewright(["verilog", *options(parameters), "--out", "."])
    if status:
        return status
    # FuseSoC has chosen the name of the core.
    (file,) = Path().glob("*.core")
    file.write_text(re.sub("^name: .*$", f'name: "{asked["vlnv"]}"', file.read_text(), flags=re.MULTILINE))
    return 0


def options(parameters):
    """Arguments of the command line for a generator's parameters.

    Parameters
    ----------
    parameters : dict
        Values by name of the option; the words of a list are joined by commas, as these options require.
    """
    arguments = []
    for name, value in parameters.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        arguments += [f"--{name}"] if value is True else [f"--{name}", text]
    return arguments
