"""Of the stand-in for torch."""
