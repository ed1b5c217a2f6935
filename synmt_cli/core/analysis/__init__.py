"""What trained models do inside: the weight of syntax, attention, what encoder states hold."""
