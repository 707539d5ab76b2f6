"""``tilewright.__version__`` is that of the distribution, and costs nothing until it is asked for."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tilewright

ROOT = Path(__file__).resolve().parent.parent


def test_version_is_the_projects():
    assert tilewright.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    with pytest.raises(AttributeError, match=r"^module 'tilewright' has no attribute 'versoin'$"):
        _ = tilewright.versoin


def test_packages_are_found_from_anywhere(tmp_path):
    program = "import tilewright, tilewright.hw, tilewright.sim, tilewright.golden; print(tilewright.__version__)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == (f"{tilewright.__version__}\n", "")
