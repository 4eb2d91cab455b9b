from typing import Any


def add_doctor(*_: Any) -> None:
    pass
