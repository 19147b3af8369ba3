"""What crosses the network: the agreement, the messages, their description."""
