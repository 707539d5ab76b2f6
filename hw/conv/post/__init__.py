"""Post-processing: from accumulators to results (docs/conv.md, "Requantisation")."""
