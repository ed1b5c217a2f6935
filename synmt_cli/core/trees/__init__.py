"""Dependency trees as plain sequences of heads."""
