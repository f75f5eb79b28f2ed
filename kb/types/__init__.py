"""The values every part works with, by subject."""
