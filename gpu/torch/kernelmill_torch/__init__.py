"""The Python side of the contract `torch`: referee, warm process, candidate. Needs torch >= 1.13."""
