"""Models that leave: trained runs as folders that are used without MXNet."""
