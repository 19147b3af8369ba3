"""What this machine can do: benchmarks, and a check that its engines agree."""
