"""Lark grammars that clients bring, read as text: what they derive, as far as it is a regular language."""
