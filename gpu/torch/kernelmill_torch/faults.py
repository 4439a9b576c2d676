"""Why an evaluation ended without a verdict of its own."""

from typing import Optional

# What torch and the libraries below it say where memory lacks, mostly in a RuntimeError.
NO_MEMORY = "out of memory", "alloc_failed", "not_initialized", "unable to find an engine", "no valid execution plans"


def lacks_memory(e: BaseException) -> bool:
    """Whether an exception says that there was too little memory."""
    says = isinstance(e, RuntimeError) and any(words in str(e).lower() for words in NO_MEMORY)
    return (
        says or isinstance(e, MemoryError) or type(e).__name__ == "OutOfMemoryError"
    )  # torch's, which is not imported here


def let_go(e: Optional[BaseException]) -> None:
    """Of all that the frames hold in which an exception, and those that it came of, went up."""
    while e is not None:
        e.__traceback__ = None
        e = e.__cause__ or e.__context__


class Fault(Exception):
    """Why an evaluation ended, by class ("candidate", "configuration", "infrastructure") and category."""

    def __init__(self, cls: str, category: str, message: str, hint: str = ""):
        super().__init__(message)
        self.cls, self.category, self.message, self.hint = cls, category, message, hint

    def to_json(self) -> dict[str, str]:
        return {"class": self.cls, "category": self.category, "message": self.message, "hint": self.hint}
