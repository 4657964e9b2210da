"""Schemas as sets of values: a normal form per JSON type, with intersection, complement and emptiness."""
