"""A user's own policy: its class loaded from a Python file, its code called with care.

Its errors are the user's, so they are reported as InputError: one line, with file
and line of the user's code.

The common part of checks of what a policy orders: one clear line for what cannot be done.
"""

import contextlib
import difflib
import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from ...inputs import InputError, check_regular
from .policy import AnyPolicy

Result = TypeVar("Result")


@dataclass(frozen=True)
class Origin:
    """Where a user's code stands."""

    file: str | None = None
    line: int | None = None


def user_policy(path: Path, class_name: str, options: Mapping[str, Any]) -> Callable[[], AnyPolicy]:
    """What makes a new policy: an instance of a class in the file ``path``, given ``options``.

    The file is run once, here, and one instance is made to see that it can be. Raises InputError
    for a file that cannot be read or run, a class that is not there or has no ``decide``, and a
    constructor that fails.
    """
    kind = _class(_module(path), class_name)
    origin = origin_of(kind)

    def make() -> AnyPolicy:
        made: AnyPolicy = guarded(lambda: kind(**options), f"policy {class_name}", origin)
        return made

    make()
    return make


def origin_of(kind: type) -> Origin:
    """Where ``decide`` of that class begins, or else the class itself."""
    try:
        file = inspect.getfile(kind)
    except (TypeError, OSError):  # made without any file
        return Origin()
    code = getattr(vars(kind).get("decide"), "__code__", None)
    if code is not None and code.co_filename == file:
        return Origin(file, code.co_firstlineno)
    try:
        return Origin(file, inspect.getsourcelines(kind)[1])
    except (OSError, TypeError, SyntaxError):
        return Origin(file)


def guarded(call: Callable[[], Result], what: str, origin: Origin) -> Result:
    """What ``call`` returns, a call of a user's code, known by ``what``.

    Raises InputError for whatever it raises, with the innermost line of the user's file. What it
    prints goes to standard error, since standard output is for results.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return call()
    except (Exception, SystemExit) as failure:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(failure.__traceback__)
            if frame.filename == origin.file
        ]
        text = f"{what} raised {type(failure).__name__}"
        if message := _message(failure):
            text += f": {message}"
        raise InputError(text, origin.file, lines[-1] if lines else origin.line) from failure


def _message(failure: BaseException) -> str:
    try:
        return str(failure)
    except Exception:
        return ""  # an exception of the user's own, broken itself


def _module(path: Path) -> ModuleType:
    """The file as a module, run."""
    file = str(path)
    try:
        check_regular(path)
        source = path.read_bytes()
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = getattr(failure, "strerror", None) or failure
        raise InputError(f"cannot be read: {reason}", file) from None
    try:
        code = compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as failure:
        raise InputError(
            f"not Python: {failure.msg}", file, failure.lineno or None, failure.offset or None
        ) from None
    except (RecursionError, MemoryError):  # the parser's limits
        raise InputError("not Python: nested too deeply", file) from None
    except ValueError as failure:  # NUL bytes, in older versions
        raise InputError(f"not Python: {failure}", file) from None
    # Under a name of its own: two files may be called alike, and dataclasses look the module up.
    digest = hashlib.sha256(file.encode(errors="surrogateescape") + b"\0" + source).hexdigest()
    module = ModuleType(f"numatwin_user_policy_{digest[:16]}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    guarded(lambda: exec(code, vars(module)), "policy file", Origin(file))
    return module


def _class(module: ModuleType, name: str) -> type:
    file = module.__file__
    found = vars(module).get(name)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        close = difflib.get_close_matches(name, classes, 1) or [
            key for key in classes if vars(module)[key].__module__ == module.__name__
        ]
        raise InputError(
            "no such class" if found is None else "not a class",
            file,
            token=name,
            expected=f"'{close[0]}'" if close else "a class with a method decide",
        )
    if not callable(getattr(found, "decide", None)):
        raise InputError(
            f"class {name} has no method decide",
            file,
            origin_of(found).line,
            expected="decide(self, observation)",
        )
    return found


class CommandCheck:
    """Refuses in the name of one policy; ``about``: what its messages begin with."""

    def __init__(self, policy_name: str, origin: Origin | None) -> None:
        self.policy_name, self.origin, self.about = policy_name, origin or Origin(), ""

    def refuse(self, message: str, expected: str) -> NoReturn:
        """Raises InputError."""
        raise InputError(
            f"policy {self.policy_name}: {self.about}{message}",
            self.origin.file,
            self.origin.line,
            expected=expected,
        )

    def listed(self, commands: Any, *kinds: type) -> list[Any]:
        """The commands that ``decide`` returned, each of one of these kinds."""
        names = " or ".join(kind.__name__ for kind in kinds)
        if isinstance(commands, (str, bytes, Mapping)) or not isinstance(commands, Iterable):
            self.refuse(
                f"decide returned {type(commands).__name__}", f"a list of {names}, [] for none"
            )
        found = list(commands)
        for command in found:
            if not isinstance(command, kinds):
                self.refuse(f"decide returned a {type(command).__name__} in its list", names)
        return found

    def position(self, what: str, value: Any, count: int) -> None:
        """``value`` is one of ``count`` positions."""
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            self.refuse(f"{what} {value!r}", f"a whole number from 0 to {count - 1}")
