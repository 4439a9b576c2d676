"""Python side of Kernelmill's contract `torch`: standard library and torch only."""
