"""The paper's tables: the runs that they ask for, and queries of the records."""
