"""What a policy is worth by a log alone: off-policy estimates, their intervals and their gates."""

import importlib
import sys
import types
from typing import Any


class _Package(types.ModuleType):
    """`rbve.ope` is a function too, in rbve.decisions. Importing this package gives its own name to
    that attribute, so that calling it has to mean the function."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return importlib.import_module("rbve.decisions").ope(*args, **keywords)


sys.modules[__name__].__class__ = _Package
