"""The command `hushrank`: one file per command, which parses, calls one function and prints."""
