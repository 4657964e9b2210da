"""What an operator sets per model: its data, its rules, its file."""
