"""Figures of mutants by block."""

from tilewright.tools.mutation import figures
from tilewright.tools.mutation.figures import summary, table
from tilewright.tools.mutation.mutants import Mutant


def test_verdicts_are_counted_by_block(monkeypatch, tmp_path):
    entry = '[[mutant]]\nfile = "tmau/top.py"\nline = "x = a + b"\nchange = "{}"\nreason = "{}"\n'
    reasons = entry.format("c3", "equal: it cannot happen") + entry.format("c4", "no test sets it")
    (tmp_path / "reasons.toml").write_text(reasons)
    monkeypatch.setattr(figures, "_REASONS", tmp_path / "reasons.toml")
    monkeypatch.setattr(figures, "HARDWARE", tmp_path)
    (tmp_path / "tmau").mkdir()
    (tmp_path / "tmau/top.py").write_text("def f():\n    x = a + b\n    x = a + c\n")
    # The last survivor's change is known, but of another line.
    verdicts = [("killed", "tests"), ("hung", "proofs"), ("refused", "tests"), ("survived", "proofs"),
                ("survived", "proofs"), ("survived", "proofs"), ("equal", "proofs")]  # fmt: skip
    mutants = [Mutant("tmau/top.py", number, 2 if number < 5 else 3, f"c{min(number, 4)}") for number in range(7)]
    found = {mutant: {"verdict": verdict, "judge": judge}
             for mutant, (verdict, judge) in zip(mutants, verdicts, strict=True)}  # fmt: skip
    found[Mutant("lib/logic.py", 0, 1, "c0")] = {"verdict": "killed", "judge": "tests"}
    counts = summary(found)
    assert counts == {
        "mutants": 5,
        "killed": 3,
        "equal": 2,
        "refused": 1,
        "rows": {
            "lib": {"mutants": 1, "killed": 1, "by_proofs": 0, "equal": 0, "refused": 0},
            "tmau": {"mutants": 4, "killed": 2, "by_proofs": 1, "equal": 2, "refused": 1},
        },
        "survivors": ["hw/tmau/top.py:2: c4: no test sets it", "hw/tmau/top.py:3: c4: nobody has looked"],
    }
    assert [line.split() for line in table(counts["rows"]).splitlines()[1:]] == [
        ["lib", "1", "1", "100%", "0", "0", "0"],
        ["tmau", "4", "2", "50%", "1", "2", "1"],
        ["all", "5", "3", "60%", "1", "2", "1"],
    ]
