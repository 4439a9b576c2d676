"""Why an evaluation ended without a verdict of its own."""


class Fault(Exception):
    """Why an evaluation ended, by class ("candidate", "configuration", "infrastructure") and category."""

    def __init__(self, cls: str, category: str, message: str, hint: str = ""):
        super().__init__(message)
        self.cls, self.category, self.message, self.hint = cls, category, message, hint

    def to_json(self) -> dict[str, str]:
        return {"class": self.cls, "category": self.category, "message": self.message, "hint": self.hint}
