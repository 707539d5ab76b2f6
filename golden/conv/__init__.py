"""What jobs of the convolution engine mean."""
