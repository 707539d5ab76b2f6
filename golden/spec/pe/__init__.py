"""Instructions, segments, errors and registers of the processing engine."""
