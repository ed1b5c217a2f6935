"""Pictures of trees, scores and training, and the page that holds them. Never torch."""
