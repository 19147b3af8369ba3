"""The simulator: many rounds of many trainings, compiled for processors and GPUs, or plain."""
