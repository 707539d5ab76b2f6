"""Hardware needs Amaranth alone: whoever only generates Verilog installs no numpy."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import sys
from importlib import import_module

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "ml_dtypes"):
            raise ModuleNotFoundError(f"{name} is not there")

sys.meta_path.insert(0, Refuse())
for name in sys.argv[1:]:
    import_module(name)
"""


def test_no_module_of_the_hardware_imports_numpy():
    files = sorted((ROOT / "hw").rglob("*.py"))
    modules = [".".join(("tilewright", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    modules = [name.removesuffix(".__init__") for name in modules]
    assert len(modules) > 100
    command = [sys.executable, "-c", CODE, *modules, "tilewright.sim.hdl.tops"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
