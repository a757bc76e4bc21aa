"""The one exception that ends a run with a sentence instead of a traceback."""


class RunError(Exception):
    """A problem whose message is all that the user needs; `code` becomes the exit status (2: wrong input)."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
