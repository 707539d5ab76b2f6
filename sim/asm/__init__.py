"""Commands and instructions as text."""
