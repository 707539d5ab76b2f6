"""Networks on the simulated hardware: a benchmark, a workload, a report."""
