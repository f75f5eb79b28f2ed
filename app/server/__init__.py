"""Server processes: children, workers, memory, logging and metrics."""
