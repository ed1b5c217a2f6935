"""Drawing sentences: a plan, then clauses, their arguments, phrases and adverbials."""
