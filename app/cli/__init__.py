"""The verbs of the command line, one module each; each loads what it needs when it runs."""
