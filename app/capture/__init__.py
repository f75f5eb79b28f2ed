"""What is taken of a running job on this host and on others: processes, stacks, sockets, dumps."""
