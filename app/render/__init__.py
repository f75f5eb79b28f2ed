"""From an answer to text a person reads: view model, terminal, Markdown, errors."""
