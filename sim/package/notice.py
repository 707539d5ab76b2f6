"""What every generated file of a top begins with: what it is, what made it, with which options, and its licence."""

import importlib.metadata

__all__ = ["described", "notice"]


def notice(choice):
    """Lines without marks of comments; no date, so that the same options make the same files."""
    package = importlib.metadata.metadata("tilewright")
    component = choice.component()
    return [
        f"{choice.name}: {type(component).__doc__.splitlines()[0]}",
        f"Made by Tilewright {package['Version']}; do not edit.",
        f"Options: {choice.options}",
        f"SPDX-License-Identifier: {package['License-Expression']}",
    ]


def described(choice):
    """One sentence without quotation marks: which top it is, and the options that make it."""
    return f"Tilewright's {type(choice.component()).__name__}, made with {choice.options}"
