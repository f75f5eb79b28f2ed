"""Text of people and machines: language, tokens, kinds of lines, secrets."""
