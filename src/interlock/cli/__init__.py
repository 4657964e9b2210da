"""One file per command; no logic that a library user would want."""
