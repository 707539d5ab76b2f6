"""Errors of model files and of their inputs."""

from tilewright.errors import UsageError

__all__ = ["ModelError", "node_error"]


class ModelError(UsageError, ValueError):
    """One sentence that names the file, the node or the tensor. The command line ends with status 2."""


def node_error(name, operator, sentence):
    """The error of a node, with its name and its operator."""
    return ModelError(f"node {name!r} ({operator}): {sentence}")
