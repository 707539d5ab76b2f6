"""``tilewright verilog``: where it cannot write. What it writes is in ``tests/integration/test_verilog.py``."""

import re

from tilewright.sim.cli import main
from tilewright.sim.hdl import export


def test_file_in_the_way(tmp_path, capsys):
    path = tmp_path / "file"
    path.touch()
    assert main(["verilog", "--preset", "unit", "--out", str(path / "below")]) == 2
    assert capsys.readouterr().err == f"tilewright verilog: --out must name a folder, not {path / 'below'}\n"


def test_a_folder_in_the_way(tmp_path, capsys):
    """Nothing is written, and nothing is made before that is known."""
    (tmp_path / "core.v").mkdir()
    assert main(["verilog", "--preset", "unit", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"tilewright verilog: {tmp_path / 'core.v'} cannot be written: it is a folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["core.v"]


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    def fails(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "to_verilog", lambda component, name: f"module {name};")
    monkeypatch.setattr(export, "write_atomically", fails)
    assert main(["verilog", "--preset", "unit", "--top", "tmau", "--out", str(tmp_path)]) == 2
    message = r"tilewright verilog: \S+tmau\.v cannot be written: No space left on device\n"
    assert re.fullmatch(message, capsys.readouterr().err)
