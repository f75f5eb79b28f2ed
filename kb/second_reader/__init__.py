"""The second reader: a language model at the team's address reads the same report."""
