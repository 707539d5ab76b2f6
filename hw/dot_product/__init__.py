"""The dot product: multipliers, and sums that are rounded once; for every engine that multiplies."""
