"""The API over HTTP, the command line, and the local engine."""
