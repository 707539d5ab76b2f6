"""Small changes of the hardware's sources, and which tests and proofs notice them."""
