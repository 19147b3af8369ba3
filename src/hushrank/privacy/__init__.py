"""What may leave a device: clipping, noise, randomised response, secure sums, and accounts of what they promise."""
