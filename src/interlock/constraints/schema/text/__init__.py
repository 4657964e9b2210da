"""Strings as regular languages: classes, boolean algebra, ECMA 262 patterns, formats, spelling."""
