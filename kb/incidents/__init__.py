"""Incidents of the team together: which recur, where, and what fixed them."""
