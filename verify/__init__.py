"""What checks the engines beside the tests themselves: random cases, comparisons, coverage, proofs, mutants."""
