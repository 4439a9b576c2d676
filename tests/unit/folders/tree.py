"""The files of the tree, for tests that read all of them."""

import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
NOT_OURS = ("build", "out", "__pycache__", "node_modules", "venv")


def files(source=SOURCE):
    """Paths relative to `source`, sorted: those that git tracks, or, in a tree without git, all but what was built."""
    if (source / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", source, "ls-files", "-z"], check=True, capture_output=True
        ).stdout.decode()
        return sorted(x for x in listed.split("\0") if x and (source / x).is_file())
    return sorted(walked(source, source))


def walked(source, folder):
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        if path.is_dir():
            if not path.name.startswith((".", *NOT_OURS)):
                yield from walked(source, path)
        elif not path.name.endswith(".pyc"):
            yield path.relative_to(source).as_posix()


def text_of(name, source=SOURCE):
    """None for a file that is no text."""
    try:
        return (source / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
