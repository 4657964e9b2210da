"""The life of one request in the API process: admission, preparation, and the way back to events."""
