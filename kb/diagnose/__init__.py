"""From a reading to an answer: evidence for and against each cause, weighed and calibrated."""
