"""Data that crosses folders. Standard library only, no behaviour worth mocking."""
