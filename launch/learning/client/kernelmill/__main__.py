"""`python -m kernelmill` is the command kernelmill."""

from .program import main

if __name__ == "__main__":
    main()
