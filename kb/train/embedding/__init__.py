"""Training of the embedded bilingual model: corpus, vocabulary, alignment, rows, files."""
