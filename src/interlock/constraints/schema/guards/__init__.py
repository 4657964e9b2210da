"""What no grammar says, checked while generating: items that must differ, keys that must not repeat."""
