"""Verilog modules that are alike, written once: a generator makes one for each instance."""

import re

__all__ = ["share_modules"]

_MODULE = re.compile(r"^module (?P<name>\\\S+|\w+)(?P<space> ?)(?P<body>\(.*?^endmodule\n)", re.MULTILINE | re.DOTALL)
#: An instance as Yosys writes it: module and instance on one line that ends with the parenthesis of the connections.
_INSTANCE = re.compile(r"^(?P<indent>  )(?P<module>\\\S+|\w+)(?P<rest> +(?:\\\S+|\w+) +\($)", re.MULTILINE)


def share_modules(verilog):
    """``verilog`` without modules that say the same as an earlier one; their instances become instances of that one.

    Modules say the same if their texts do, but for their own names and those of modules that say the same.
    """
    modules = {match["name"]: match["body"] for match in _MODULE.finditer(verilog)}
    kept = {name: name for name in modules}  # the module that stands for it

    def renamed(body):
        def instance(match):
            name = kept.get(match["module"], match["module"])
            return f"{match['indent']}{name}{match['rest']}"

        return _INSTANCE.sub(instance, body)

    while True:
        first = {}
        chosen = {name: first.setdefault(renamed(body), name) for name, body in modules.items()}
        if chosen == kept:
            break
        kept = chosen

    def rewritten(match):
        name = match["name"]
        return f"module {name}{match['space']}{renamed(match['body'])}" if kept[name] == name else ""

    # What separates modules goes with those that are dropped.
    return re.sub(r"\n{3,}", "\n\n", _MODULE.sub(rewritten, verilog))
