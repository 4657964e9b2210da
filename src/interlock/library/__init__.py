"""Interlock in a program of your own: constraints, masks and parsers without a server."""
