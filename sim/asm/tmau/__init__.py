"""The text of TMAU commands."""
