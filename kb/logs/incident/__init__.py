"""From events to one incident: ranks, waves, first error, stage, facts."""
