"""What people hand in: uploads, contributions, feedback."""
