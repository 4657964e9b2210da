"""From a ``GenerateRequest`` to everything serving needs to run it. Pure: no I/O, no clock, no locks."""
