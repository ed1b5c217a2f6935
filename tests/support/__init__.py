"""What the tests share: the program, small models, trees and hostile input."""
