"""hushrank: search that learns from everyone's clicks and sees no one's."""

__version__ = "0.1.0"
