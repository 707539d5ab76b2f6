"""The parser of the command line: a wrong argument is one sentence that begins with the command it was given to."""

import argparse

from tilewright.spec.names import suggestion

__all__ = ["Parser", "one_line"]


class _Once(argparse.Action):
    """Stores a value; a second one is refused, for it would hide the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one sentence, and takes options by their full names."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args=None, namespace=None):
        """As of ``ArgumentParser``, but each command refuses itself what it does not know, so that its name is said."""
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            option = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion(option, self._option_string_actions)}")
        return namespace, rest

    def error(self, message):
        """Ends with status 2 and the sentence."""
        self.exit(2, f"{self.prog}: {one_line(message)}\n")

    def _check_value(self, action, value):
        """As of ``ArgumentParser``, with what may have been meant."""
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            meant = suggestion(value, action.choices) or f": `{self.prog} --help` lists them"
            raise argparse.ArgumentError(None, f"there is no command {value!r}{meant}")
        choices = ", ".join(map(repr, action.choices))
        raise argparse.ArgumentError(
            action, f"invalid choice: {value!r} (choose from {choices}){suggestion(value, action.choices)}"
        )


def one_line(sentence):
    """With escapes for what is in some file names, and would break the line or move the cursor."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence)
