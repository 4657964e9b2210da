"""Chat templates for models that bring none: their makers ship code instead."""
