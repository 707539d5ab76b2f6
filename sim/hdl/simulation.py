"""A simulation that runs in a process of its own and exchanges numpy arrays and numbers."""

import re
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from .build import WAVEFORMS, build
from .testbench import FLAGS, OWN_STATUSES, TOP, write_save_files

__all__ = ["Simulation", "SimulationError", "waveform_format"]

_WAVES = "waves.out"
_COVERAGE = "coverage.dat"
_COMMENT = re.compile("//.*")


class SimulationError(RuntimeError):
    """The simulation ended when it should not, or gave an answer that is none."""


def waveform_format(path):
    """Format of the waveform file ``path``, which its suffix says; None if ``path`` is None.

    Raises
    ------
    ValueError
        If it is another suffix.
    """
    if path is None:
        return None
    suffix = Path(path).suffix.removeprefix(".")
    if suffix not in WAVEFORMS:
        raise ValueError(f"a waveform is a file .vcd or .fst, not {str(path)!r}")
    return suffix


class Simulation:
    """A design, built and running; a context manager.

    Parameters
    ----------
    design : Design
        From ``make_design``.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    waves : Path or None
        Leave a waveform there when closed, in the format of its suffix: ``.vcd`` or ``.fst``. Beside it save files of
        the design's ``signals``, for GTKWave (``.gtkw``) and Surfer (``.sucl``).
    coverage : Path or None
        Leave there when closed how often Verilator ran each statement; see ``sim/hdl/cocotb_run.py``.

    Attributes
    ----------
    controls : dict of str to int
        Values of the harness's inputs from the next exchange on; all zero at first.
    cycles, seconds : int, float
        Clock cycles simulated and time spent in exchanges so far.
    """

    def __init__(self, design, *, simulator="verilator", waves=None, coverage=None):
        self._design = design
        program = build(
            design.verilog, TOP, simulator=simulator, waves=waveform_format(waves), coverage=coverage is not None
        )
        self.controls = dict.fromkeys(self._design.controls, 0)
        self.cycles = 0
        self.seconds = 0.0
        self._keep = {_WAVES: waves, _COVERAGE: coverage}
        self._loads = {}
        self._folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            program.command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def load(self, name, first, words):
        """Has words stored in the array ``name`` at the beginning of the next exchange.

        Parameters
        ----------
        first : int
            Index of the first word.
        words : array_like of uint8
            One row a word, least significant byte first.
        """
        self._check_open()
        array = self._design.arrays[name]
        words = np.asarray(words, np.uint8).reshape(-1, array.width // 8)
        if first < 0 or first + len(words) > array.depth:
            raise ValueError(f"{name} has words 0 to {array.depth - 1}, not {first} to {first + len(words) - 1}")
        if len(words):
            rows = words[:, ::-1].tobytes().hex("\n", array.width // 8)
            self._loads.setdefault(name, []).append(f"@{first:x}\n{rows}\n")

    def exchange(self, *, reset=False, start=False, limit=0, drain=0, dump=None):
        """Lets the simulation run, and returns when it stands still again.

        Parameters
        ----------
        reset : bool
            Assert the reset first. Arrays keep their contents.
        start : bool
            Raise ``start`` in the first cycle.
        limit : int
            Cycles to run at most, unless the harness has finished before.
        drain : int
            Cycles to run after that.
        dump : dict of str to (int, int)
            Arrays to read at the end: first word, and number of words.

        Returns
        -------
        dict, dict
            Every status by name, with ``cycles``, the cycles run without reset and drain, and ``finished``; and every
            dumped array as uint8, one row a word.
        """
        self._check_open()
        begin = time.perf_counter()
        dump = {name: window for name, window in (dump or {}).items() if window[1]}
        numbers = dict(zip(FLAGS, (reset, start, limit, drain), strict=True)) | self.controls
        line = [f"{int(number):x}" for number in numbers.values()]
        for name, array in self._design.arrays.items():
            first, count = dump.get(name, (0, 0))
            if first < 0 or first + count > array.depth:
                raise ValueError(f"{name} has words 0 to {array.depth - 1}, not {first} to {first + count - 1}")
            line += [f"{int(name in self._loads)}", f"{first:x}", f"{first + count:x}"]
        written = {self._folder / f"{name}.load": "".join(sections) for name, sections in self._loads.items()}
        for path, text in written.items():
            path.write_text(text)
        self._loads = {}
        statuses = self._ask(" ".join(line))
        # A file system may wait for its disk where a file is written over, and does not for one that is new.
        for path in written:
            path.unlink()
        arrays = {name: self._read(name) for name in dump}
        self.cycles += statuses["cycles"] + drain
        self.seconds += time.perf_counter() - begin
        return statuses, arrays

    def close(self):
        """Ends the process; no exchange is possible afterwards. May be called twice."""
        with suppress(OSError):  # it may be gone already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        for name, path in self._keep.items():
            if path is not None and (self._folder / name).exists():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(self._folder / name, path)
                if name == _WAVES:
                    write_save_files(path, self._signals())
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signals(self):
        """The design's signals by their names in a waveform."""
        return {
            group: {f"{TOP}.dut.{name}": form for name, form in signals.items()}
            for group, signals in self._design.signals.items()
        }

    def _check_open(self):
        if self._process.stdin.closed:
            raise SimulationError("the simulation has been closed")

    def _ask(self, line):
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone; what it said last tells why
        # What the design or the simulator prints is kept for the case that no answer follows.
        printed = []
        try:
            for answer in self._process.stdout:
                if answer.startswith("= "):
                    return self._statuses(answer)
                printed.append(answer)
        except KeyboardInterrupt:
            self.close()  # the answer that was not waited for would be taken for that of the next exchange
            raise
        self._errors.seek(0)
        said = [text.strip() for text in (*self._errors, *printed) if text.strip()]
        raise SimulationError(f"the simulation ended by itself: {said[-1] if said else 'it said nothing'}")

    def _statuses(self, answer):
        names = [*OWN_STATUSES, *self._design.statuses]
        words = answer.split()[1:]
        for name, word in zip(names, words, strict=True):
            # What never got a value is printed as x.
            if not all(digit in "0123456789abcdef" for digit in word):
                raise SimulationError(f"{name} is unknown at the end of a run: {word}")
        return {name: int(word, 16) for name, word in zip(names, words, strict=True)}

    def _read(self, name):
        path = self._folder / f"{name}.dump"
        text = path.read_text()
        path.unlink()
        if "//" in text:  # Icarus says the address in comments
            text = _COMMENT.sub("", text)
        try:
            words = np.frombuffer(bytes.fromhex(text), np.uint8)
        except ValueError:
            raise SimulationError(f"some words of {name} are unknown") from None
        return words.reshape(-1, self._design.arrays[name].width // 8)[:, ::-1]
