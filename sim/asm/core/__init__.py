"""The text of programs of the command processor."""
