"""What an observer of uploads, or of rankers, can find out about a client."""
