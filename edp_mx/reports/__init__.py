"""From run directories to tables and plots. A report never trains."""
