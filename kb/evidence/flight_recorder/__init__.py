"""Flight-recorder dumps of a job: read safely, laid side by side, judged by rules."""
