"""The client of a federation, on a person's own device."""
