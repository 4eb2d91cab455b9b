"""Who asks: from what a caller sends, or who stands before the server, to an Identity."""
