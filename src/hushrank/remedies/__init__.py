"""What helps clients that differ: remedies that change how a client learns, what it keeps, or what is shared."""
