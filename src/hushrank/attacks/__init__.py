"""What malicious clients send."""
