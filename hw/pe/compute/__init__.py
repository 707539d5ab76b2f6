"""The computing side: columns of B and rows of A to the multipliers, results back."""
