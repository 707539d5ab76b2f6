"""Networks to show: what builds their model files, and photographs for them."""
