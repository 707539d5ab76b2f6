"""Arguments of wrong kinds in public calls: which calls answer by a sentence of somebody else's.

A sentence is the package's own if a ``raise`` statement of the package has made it. What numpy, a method of a builtin
type, or an operator of Python says of what it was handed is not.
"""

import linecache

import numpy as np

__all__ = ["WRONG", "wrong_answers"]

#: Values of kinds that somebody may hand in, by what they are called.
WRONG = {
    "None": None, "a number": 3, "a large number": 1 << 70, "a negative number": -5, "a float": 1.5, "a boolean": True,
    "a scalar": np.float64(2.5), "a text": "nothing", "bytes": b"\x01\x02", "a list": [1, 2], "an empty list": [],
    "a nested list": [[1], [2, 3]], "a list of texts": ["a"], "a dictionary": {"nothing": 1}, "a set": {1},
    "an object": object(), "a class": int, "a function": print,
    "an array": np.arange(6, dtype=np.uint8).reshape(2, 3), "an empty array": np.zeros(0, np.int8),
    "an array of objects": np.array([None, "a"], object), "an array of texts": np.array(["a", "b"]),
}  # fmt: skip


def wrong_answers(call, arguments, tested=None, wrong=WRONG):
    """Answers to one argument of a wrong kind at a time that are no sentence of the package.

    Parameters
    ----------
    call : callable
    arguments : callable
        Returns right arguments by their names, made anew for each call.
    tested : sequence of str or None
        Names of those that are replaced; None: all.
    wrong : dict of str to value

    Returns
    -------
    list of str
        What was handed in, and the answer.
    """
    call(**arguments())  # the right ones are taken
    found = []
    for name in tested or arguments():
        for kind, value in wrong.items():
            try:
                call(**(arguments() | {name: value}))
            except Exception as error:  # whatever class it has is judged
                if answer := _foreign(error):
                    found.append(f"{name} = {kind}: {answer}")
    return found


def _foreign(error):
    """What is wrong with an answer; empty if it is the package's own sentence."""
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    if isinstance(error, OSError) and error.filename is not None:
        return ""  # it names a file that is not there
    code, told = last.tb_frame.f_code, f"{type(error).__name__}: {error}"
    statement = linecache.getline(code.co_filename, last.tb_lineno).strip()
    if not last.tb_frame.f_globals["__name__"].startswith("tilewright.") or not statement.startswith("raise"):
        return f"{told} ({code.co_name}: {statement})"
    return "" if str(error) and "\n" not in str(error) else f"{told!r}: no sentence, or several lines"
