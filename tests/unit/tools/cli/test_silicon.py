"""``tilewright silicon``: which subcommands there are, and that every one is a module like others."""

from importlib import import_module

import pytest

from tilewright.tools.cli.main import main
from tilewright.tools.cli.silicon import COMMANDS


def test_help_names_every_subcommand(capsys):
    with pytest.raises(SystemExit) as end:
        main(["silicon", "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert list(COMMANDS) == ["capture", "ask", "time", "pack", "all", "take"]
    assert all(f"    {name} " in text for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_subcommand_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        main(["silicon", name, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: tilewright silicon {name} ")


@pytest.mark.parametrize("arguments", [[], ["guess"]])
def test_anything_else_is_one_sentence(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(["silicon", *arguments])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("tilewright silicon: ")
    assert error.count("\n") == 1


def test_run_is_that_of_the_subcommand(monkeypatch, tmp_path):
    out = tmp_path / "answers.json"
    monkeypatch.setattr(import_module(COMMANDS["ask"][0]), "run", lambda args: 7 if args.out == out else 0)
    assert main(["silicon", "ask", "cases.json", "--out", str(out)]) == 7
