"""What leaks: audits of the running system, membership inference on finished runs, canaries."""
