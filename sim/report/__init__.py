"""The report of a run: page, charts, timeline."""
