"""Guessing the next tokens, and knowing when that pays."""
