"""What a finished run says: a page that travels as one file, and a table for the terminal."""
