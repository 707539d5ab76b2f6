"""The command processor: a program in global memory becomes work of the engines."""

__all__ = []
