"""The waivers that come with a Verilog file: what Verilator's lint says of it, and why that is no fault."""

from ..hdl.lint import WAIVED

__all__ = ["waivers"]


def waivers(name):
    """Verilator's configuration for ``name.v``: with it ``verilator --lint-only -Wall name.vlt name.v`` is silent."""
    lines = ["`verilator_config", f"// What Verilator warns of in {name}.v, each with the reason why it may."]
    for rule, reason in WAIVED.items():
        lines += ["", f"// {reason}", f'lint_off -rule {rule} -file "*{name}.v"']
    return "\n".join(lines) + "\n"
