"""Failed jobs of a Kubernetes cluster, diagnosed from the logs of their pods."""
