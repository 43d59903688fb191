"""The paper's tables: which runs they ask for, and what the records of runs say."""
