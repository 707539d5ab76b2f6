"""State that programs see: registers, predicates, uniform registers, segments."""
