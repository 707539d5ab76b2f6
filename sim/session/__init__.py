"""Sessions: a design that runs in a simulator; numpy arrays in, numpy arrays and cycles out."""
