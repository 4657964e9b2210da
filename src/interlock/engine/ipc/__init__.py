"""The messages between the API process and the worker, and how they travel."""
