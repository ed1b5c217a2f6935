"""The jobs of the filters: what each of them does to its segments."""
