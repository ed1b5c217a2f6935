"""Analyses of trained models: the weight of syntax, attention, what encoder states hold."""
