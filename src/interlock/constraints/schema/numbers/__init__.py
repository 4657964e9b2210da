"""Numbers as exact sets: intervals, multiples, and how their members are written."""
