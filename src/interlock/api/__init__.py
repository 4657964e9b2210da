"""HTTP: the only place that knows a vendor's wire format."""
