"""Runs that lie on this machine, and their rows for trainers, as the program gives them.

from kernelmill import export_rows, runs

for run in runs("runs"):
    print(run.run, run.state, run.reward)
for row in export_rows("first", "trl"):
    ...
"""

import dataclasses
import json
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Sequence, Type, TypeVar, Union

from .program import find_program
from .transport import KernelmillError, NotFound, RequestError, Unavailable

T = TypeVar("T")
Names = Union[str, Sequence[str]]

_ERRORS = {2: RequestError, 3: NotFound, 69: Unavailable}  # by exit code
_NO_ROW = 5  # exit code of an export without a row


@dataclasses.dataclass(frozen=True)
class Run:
    """A row of `kernelmill runs`. `reward` is the mean of the best rewards of ended episodes; `best_speedup_lower`,
    `geomean_speedup` and `evidence` are defined in docs/reference/glossary.md#figures."""

    run: str
    directory: str
    state: str
    episodes: int
    ended: int
    progress: float
    turns: int
    accepted: int
    rejected: int
    infrastructure: int
    reward: Optional[float]
    best_speedup_lower: Optional[float]
    geomean_speedup: Optional[float]
    evidence: Optional[float]
    near_misses: int
    best_turn: str
    began_at: float
    seconds: float
    left_seconds: Optional[float]
    failure: str
    failure_category: str

    @property
    def over(self) -> bool:
        """Whether no process works on it."""
        return self.state not in ("running", "queued", "paused")


def of_json(kind: Type[T], document: Dict[str, Any]) -> T:
    """Of a document that may have more fields than this version knows, or fewer."""
    of_class: Any = kind
    names = [x.name for x in dataclasses.fields(of_class)]
    return kind(**{x: document.get(x) for x in names})


def _error(code: int, text: str) -> KernelmillError:
    kind = _ERRORS.get(code, KernelmillError)
    try:
        said = json.loads(text)["error"]
        return kind(0, said["category"], said["message"], said.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return kind(0, "program_failed", text.strip() or f"kernelmill ended with {code}")


def ask_program(*words: str, program: Optional[str] = None) -> Any:
    """The document that a command prints with --json."""
    done = subprocess.run(
        [find_program(program), *words, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise _error(done.returncode, done.stderr)
    return json.loads(done.stdout)


def runs(root: str = "runs", *, where: str = "", program: Optional[str] = None) -> List[Run]:
    """The runs of a folder. `where` is a condition such as 'state=failed'."""
    words = ["runs", "--root", root] + (["--where", where] if where else [])
    return [of_json(Run, x) for x in ask_program(*words, program=program)["runs"]]


def _words(names: Names, form: str, root: str, options: Sequence[str], out: str) -> List[str]:
    given = [names] if isinstance(names, str) else list(names)
    return ["export", "--form", form, "--root", root, "--out", out, *options, *given]


def export(
    names: Names, form: str, out: str, *, root: str = "runs", options: Sequence[str] = (), program: Optional[str] = None
) -> Dict[str, Any]:
    """Writes runs as a data set into a new folder, and says what is in it. No row is an error.

    `options` are more options of `kernelmill export`, such as ["--accepted", "--min-reward", "1"].
    """
    document: Dict[str, Any] = ask_program(*_words(names, form, root, options, out), program=program)
    return document


def export_rows(
    names: Names, form: str, *, root: str = "runs", options: Sequence[str] = (), program: Optional[str] = None
) -> Iterator[Dict[str, Any]]:
    """The rows of a form, one after the other, without a file. Ends the program when the caller takes no more."""
    command = [find_program(program), *_words(names, form, root, options, "-")]
    with tempfile.TemporaryFile() as said:
        exporter = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        try:
            assert exporter.stdout
            for line in exporter.stdout:
                yield json.loads(line)
            if (code := exporter.wait()) not in (0, _NO_ROW):
                said.seek(0)
                raise _error(code, said.read().decode(errors="replace"))
        finally:
            exporter.kill()
            exporter.wait()
            if exporter.stdout:
                exporter.stdout.close()
