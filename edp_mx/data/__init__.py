"""From files to batches: readers, stand-in corpora, splits, vocabularies, micro-batches."""
