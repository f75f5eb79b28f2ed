"""Evidence beside the log: dumps, stacks, RAS reports, kernel lines, launcher files."""
