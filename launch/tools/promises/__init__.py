"""The fifteen promises, and what measures each: launch/promises.sh."""
