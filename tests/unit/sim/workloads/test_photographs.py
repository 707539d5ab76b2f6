"""The photographs: those of scikit-learn, which is not imported for them."""

import subprocess
import sys

import pytest

from tilewright import extras
from tilewright.errors import UsageError
from tilewright.sim.workloads.photographs import load_photographs

PROGRAM = """
import sys
from tilewright.sim.workloads.photographs import load_photographs
ours = load_photographs()
assert "sklearn" not in sys.modules and "scipy" not in sys.modules
from sklearn.datasets import load_sample_images
for photo, image in zip(ours, load_sample_images().images, strict=True):
    assert photo.shape == (427, 640, 3) and photo.flags["C_CONTIGUOUS"] and (photo == image).all()
"""


@pytest.mark.long
def test_photographs_are_those_of_scikit_learn():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_crop_is_the_middle():
    for photo, part in zip(load_photographs(), load_photographs((27, 40)), strict=True):
        assert (part == photo[200:227, 300:340]).all()


def test_missing_packages(monkeypatch):
    monkeypatch.setattr(extras, "_is_installed", lambda name: name != "scikit-learn")
    with pytest.raises(UsageError, match=r"^scikit-learn must be installed: pip install 'tilewright\[sim\]'$"):
        load_photographs()
