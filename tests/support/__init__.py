"""Machinery that tests share; they import it from here, and nothing else from each other."""
