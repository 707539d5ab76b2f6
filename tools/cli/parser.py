"""The parser of the command line. A wrong argument gives one sentence, which begins with the name of the command."""

import argparse

from tilewright.spec.names import suggestion

__all__ = ["Parser", "one_line"]


class _Once(argparse.Action):
    """Stores a value; a second value is refused, because it would replace the first one."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one sentence, and accepts only full names of options."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args=None, namespace=None):
        """Like ``ArgumentParser``, but each command refuses unknown arguments itself, so that the sentence names it."""
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            option = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion(option, self._option_string_actions)}")
        return namespace, rest

    def error(self, message):
        """Ends with status 2 and the sentence."""
        self.exit(2, f"{self.prog}: {one_line(message)}\n")

    def _check_value(self, action, value):
        """Like ``ArgumentParser``, with a suggestion."""
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
    """The text with escapes for control characters, which some file names have."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence)
