"""``POST /v1/chat/completions``: ``wire`` -> ``request`` -> the service -> ``response`` or ``stream``."""
