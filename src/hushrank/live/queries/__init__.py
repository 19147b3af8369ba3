"""The way of a query: from a person's device, through a relay perhaps, to a search engine, and back."""
