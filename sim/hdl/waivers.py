"""The waivers that come with a Verilog file: what Verilator's lint says of it, and why that is harmless."""

__all__ = ["waivers"]

#: Rules of Verilator about the style of generated text, with what makes each harmless here. All other warnings count.
#: Verilator refuses the whole file if it names a rule that it does not know, so every rule is one of the oldest
#: Verilator in ``docs/integration.md``, "Versions of tools".
_RULES = {
    "CMPCONST": "Of comparisons with every value in turn, the last may always come out the same.",
    "DECLFILENAME": "All modules are in one file.",
    "UNOPTFLAT": "A payload is one vector whose bits go different ways; Yosys checks bit by bit that there is no loop.",
    "UNSIGNED": "Of comparisons with every value in turn, the first may always come out the same.",
    "UNUSEDSIGNAL": "Of a vector, or of what a module is given, some bits may have no use.",
    "VARHIDDEN": "A signal may have the name of an instance in the module above.",
    "WIDTH": "Amaranth extends and truncates by the rules of Verilog. Newer names: WIDTHEXPAND, WIDTHTRUNC.",
}
#: The same by the text of the warning, for rules that the oldest Verilator does not know.
_MESSAGES = {
    "Procedural assignment to declaration with initial value": "Registers have power-on values. Rule PROCASSINIT.",
}


def waivers(name):
    """Verilator's configuration for ``name.v``: with it ``verilator --lint-only -Wall name.vlt name.v`` is silent."""
    lines = ["`verilator_config", f"// What Verilator warns of in {name}.v, each with the reason why it may."]
    for rule, reason in _RULES.items():
        lines += ["", f"// {reason}", f'lint_off -rule {rule} -file "*{name}.v"']
    for message, reason in _MESSAGES.items():
        lines += ["", f"// {reason}", f'lint_off -file "*{name}.v" -match "*{message}*"']
    return "\n".join(lines) + "\n"
