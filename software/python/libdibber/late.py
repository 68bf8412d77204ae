"""numpy, imported when one of its names is used for the first time.

Many commands look at a card and use no array. The import of numpy took 0.13 of the 0.29 seconds of
CPU time that they needed. Modules that use numpy import it from here:

    from libdibber.late import np

They also begin with `from __future__ import annotations`. Otherwise an annotation like `np.ndarray`
would be evaluated, and import numpy, when its function is defined.
"""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["np"]


class LateModule:
    """Stands for a module. It keeps each name that was used.

    Threads may use it at once: the import system lets one of them import, and the others wait.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as np
else:
    np = LateModule("numpy")
