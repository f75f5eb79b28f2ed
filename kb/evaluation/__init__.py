"""Measuring quality: retrieval, diagnosis, knowledge; each figure with its interval."""
