"""Finding the lines of a log that matter, and what each says."""
