"""The types of problems that jobs report, by subject. Each has the texts that users see; nothing else does."""

from importlib import import_module
from pkgutil import iter_modules

# The pages about problems show the types of all modules, also of those that a process does not use.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
