"""The runtime: threads, compiled loops, files, workers."""
