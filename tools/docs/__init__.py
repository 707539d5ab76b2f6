"""Tools for the documentation: generated pages, cited figures, code blocks, verification stages."""
