"""What ``tilewright board`` refuses, and what it says; the design is simulated in tests/integration."""

import numpy as np
import pytest

from tilewright.board.photograph import Moved
from tilewright.tools.cli import board as command
from tilewright.tools.cli.main import main


@pytest.mark.parametrize(
    ("port", "sentence"), [("{}/none", "{}/none: No such file or directory"), ("{}/file", "{}/file is no serial port")]
)
def test_no_port(port, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "_PICTURE", tmp_path / "board")
    (tmp_path / "file").touch()
    assert main(["board", "--port", port.format(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"tilewright board: {sentence.format(tmp_path)}"


def test_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "_PICTURE", tmp_path)
    monkeypatch.setattr(command, "SerialLink", lambda port, baud: opened.append((port, baud)) or Link())
    monkeypatch.setattr(command, "BoardHost", lambda link, params: None)
    moved = Moved(np.zeros((4, 4, 3), np.uint8), tiles=28, compared=150_000, cycles=50_000)
    monkeypatch.setattr(command, "move_photograph", lambda host, params, photo: moved)
    opened = []
    assert main(["board", "--port", "/dev/ttyUSB0"]) == 0
    assert opened == [("/dev/ttyUSB0", 1_000_000)]
    assert capsys.readouterr().out.splitlines() == [
        "ulx3s-85f, /dev/ttyUSB0: 128 x 96 pixels",
        "28 tiles of 128 bytes x 16 rows loaded and stored in 50,000 cycles, 2.00 ms at 25 MHz",
        "150,000 bytes of both memories equal the golden model's",
        str(tmp_path / "ulx3s-85f.png"),
    ]
    assert (tmp_path / "ulx3s-85f.png").exists()


class Link:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass
