"""A board's design from the computer: over its serial line, or over that of a simulation of it."""
