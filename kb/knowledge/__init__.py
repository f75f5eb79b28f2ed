"""The knowledge files of `data/`: loaded, checked against their schema, and named."""
