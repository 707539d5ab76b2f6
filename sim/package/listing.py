"""The Verilog of a top as its users read it: a notice, and the ports by interface.

Yosys lists inputs first. Simulators here take its text as it is, so that what is built of it outlives changes here.
"""

import re
import textwrap
from itertools import groupby

from .notice import notice
from .ports import interface_docs, ports_of

__all__ = ["listing"]

#: A port as Yosys declares it in the module: its direction, then what it is.
_PORT = re.compile(
    r"^  (?P<way>input|output) (?P<range>\[[^]]+\] )?(?P<name>\w+);\n"
    r"  (?P<kind>wire|reg) (?P=range)?(?P=name)(?P<value> = [^;]+)?;\n",
    re.MULTILINE,
)
_LINE = 120


def listing(choice, verilog):
    """``verilog``, the text of a :class:`~.choice.Choice`, with its notice and its ports by interface."""
    says = "".join(f"// {line}\n" for line in notice(choice))
    module = re.search(rf"^module {choice.name}\([^)]*\);\n(.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL)
    declared = {match["name"]: match for match in _PORT.finditer(module[1])}
    ports = _ports(choice.component(), declared)
    body = _PORT.sub("", module[1])
    return f"{says}{verilog[: module.start()]}module {choice.name}(\n{ports}\n);\n{body}{verilog[module.end(1) :]}"


def _ports(component, declared):
    """The ports of a module, by interface, with a comment before each; ``declared`` are their declarations by name."""
    docs, ports = interface_docs(component), ports_of(component)
    if {port.name for port in ports} != set(declared):
        raise AssertionError(f"the ports of {type(component).__name__} are not those of its Verilog")
    lines = []
    for interface, group in groupby(ports, key=lambda port: port.bundle):
        lines += ["", *_comment(interface, docs[interface])]
        lines += [_declaration(declared[port.name]) for port in group]
    # No comma behind the last one, which no comment follows.
    return "\n".join(lines[1:])[:-1]


def _comment(interface, meaning):
    return textwrap.wrap(
        f"{interface}: {meaning}".replace("`", ""), _LINE, initial_indent="  // ", subsequent_indent="  // "
    )


def _declaration(match):
    return f"  {match['way']:<6} {match['kind']} {match['range'] or ''}{match['name']}{match['value'] or ''},"
