"""Search over the entries: by meaning, by words, by log lines."""
