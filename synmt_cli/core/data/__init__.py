"""Records as numbers: corpora, batches, and the files they are kept in."""
