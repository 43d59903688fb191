"""What the rest runs on: threads, compiled loops, files, workers."""
