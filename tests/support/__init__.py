"""Shared by the tests: the program, small models, trees and hostile input."""
