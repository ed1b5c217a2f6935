"""Errors that a user can act on, and the exit status of each. Anything else is a bug.

SynmtError              the root of the tree; never raised itself
  NegativeAnswer   1    a question was answered "no" (`check`, `score --fail-under`)
  UsageError       2    the command line asks for something impossible
  DataError       65    input is not what its format promises
  ReadError       66    an input cannot be opened or read
  Unavailable     69    a model, a device, a package, or the memory to load one, is missing
  CreateError     73    an output cannot be created
  WriteError      74    writing failed (disk full, closed stdout), or memory ran out
  WorkerLost      74    a worker process was killed: the output is not complete
  Stopped         75    stopped early and saved; the same command again resumes
  ConfigError     78    a configuration, vocabulary or machine does not fit the run, or the loss
                        is not a number

A bug exits 70 with its traceback; signals exit 128 + their number (signals.py).
"""

import errno
import importlib.util
import unicodedata
from os import PathLike

Place = tuple[str, int]  # file, and line from 1
BUG = 70
QUOTE_LIMIT = 80
_OF_MEMORY = (  # in messages of libraries
    *("can't allocate memory", "annot allocate memory", "out of memory"),
    *("failed to map segment", "can't start new"),
    *("_STATUS_ALLOC_FAILED", "Failed to CUDA calloc"),
)


class SynmtError(Exception):
    """A failure to report in one line, without a traceback.

    message: may contain text of the input, such as a name; it is escaped here.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class NegativeAnswer(SynmtError):
    """The question that the command asks was answered "no"."""

    exit_code = 1


class UsageError(SynmtError):
    """The command line asks for something impossible."""

    exit_code = 2


class DataError(SynmtError):
    """Bad input. source: the file's name. line: its physical line from 1, or None."""

    exit_code = 65

    def __init__(self, source: str, line: int | None, problem: str) -> None:
        where = source if line is None else f"{source}:{line}"
        super().__init__(f"{where}: {problem}")
        self.source = source
        self.line = line
        self.problem = problem

    def __reduce__(self) -> tuple[type, tuple[str, int | None, str]]:
        """Lets the error travel between processes with all its fields."""
        return type(self), (self.source, self.line, self.problem)


class ReadError(SynmtError):
    """An input cannot be opened or read."""

    exit_code = 66


class Unavailable(SynmtError):
    """A model, a device, a package, or the memory to load one, is missing. Says what to do."""

    exit_code = 69


class CreateError(SynmtError):
    """An output cannot be created."""

    exit_code = 73


class WriteError(SynmtError):
    """Writing failed: the disk is full, or stdout is closed."""

    exit_code = 74


class WorkerLost(SynmtError):
    """A worker process was killed, so the output is not complete."""

    exit_code = 74


class Stopped(SynmtError):
    """Stopped before the end, with everything saved that is needed to resume."""

    exit_code = 75


class ConfigError(SynmtError):
    """A configuration, vocabulary or checkpoint does not fit."""

    exit_code = 78


def printable(text: str) -> str:
    """Text with control, bidirectional, unassigned and undecodable characters escaped.

    >>> print(printable("a" + chr(0x202E) + "b" + chr(10)))
    a\\u202eb\\n
    """
    if text.isprintable():  # no category below is printable: the common case is free
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp")
        else char
        for char in text
    )


def quoted(text: str) -> str:
    """Input as a message shows it: in quotes, escaped, cut at 80 characters.

    >>> quoted("x" * 100) == "'" + "x" * 80 + "…'"
    True
    """
    cut = text if len(text) <= QUOTE_LIMIT else text[:QUOTE_LIMIT] + "…"
    return f"'{printable(cut)}'"


def counted(n: int, noun: str) -> str:
    """A number and its noun, which is plural unless the number is 1.

    >>> counted(1, "tree"), counted(3000, "tree")
    ('1 tree', '3,000 trees')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def other_number(source: str, n: int, unit: str, other: str, expected: int) -> DataError:
    """The DataError for a file with another number of lines, or of other units, than it needs.

    other: what has the number expected, for the message.

    >>> print(other_number("b.de", 1, "line", "a.de", 2000))
    b.de: 1 line, but a.de has 2,000
    """
    return DataError(source, None, f"{counted(n, unit)}, but {other} has {expected:,}")


def reason(error: BaseException) -> str:
    """The system's message for an OSError, the exception's own otherwise."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def is_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, for which libraries raise errors of many kinds."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return isinstance(error, Exception) and any(phrase in str(error) for phrase in _OF_MEMORY)


def _shown(name: str | PathLike[str]) -> str:
    """A name as messages show it; an empty one in quotes."""
    return str(name) or quoted("")


def cannot_read(name: str | PathLike[str], error: BaseException) -> ReadError:
    """The ReadError for what the system raised at a file."""
    return ReadError(f"cannot read {_shown(name)}: {reason(error)}")


def cannot_create(name: str | PathLike[str], error: BaseException) -> CreateError:
    """The CreateError for what the system raised at a file or folder."""
    return CreateError(f"cannot create {_shown(name)}: {reason(error)}")


def cannot_write(name: str | PathLike[str], error: BaseException) -> WriteError:
    """The WriteError for what the system raised at a file or folder."""
    return WriteError(f"cannot write {_shown(name)}: {reason(error)}")


def require_packages(what: str, extra: str, *packages: str) -> None:
    """Raises Unavailable unless the packages of an extra are installed. what: what needs them."""
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise Unavailable(f"{what} needs {name}; run: pip install 'synmt-cli[{extra}]'")
