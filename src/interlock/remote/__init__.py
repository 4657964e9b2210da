"""Engines behind somebody else's HTTP API, in the place of a worker of our own."""
