"""What an observer of uploads can find out about a client."""
