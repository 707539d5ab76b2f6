"""Random programs of the processing engine."""
