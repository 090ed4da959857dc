"""The backend `torch`."""
