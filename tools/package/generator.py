"""The generator for FuseSoC: makes a top from options of ``tilewright verilog`` in a core file, and its core file."""

import re
from pathlib import Path

import yaml

from ..cli.main import main as tilewright

__all__ = ["main", "options"]


def main(path):
    """Makes the top that the YAML file ``path`` of FuseSoC names, in the current folder; returns the exit status."""
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
