"""What the server shows of what it does: traces, metrics, and a log of what is slow or expensive."""
