"""The live time, which is always an argument: nothing below the command line reads a clock.

Source: spec/format.md 11. Start at `Clock`.
"""

from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Gives the live time in whole seconds since 1970, UTC."""
