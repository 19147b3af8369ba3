"""Published tables and figures, rerun, with a test for each claim."""
