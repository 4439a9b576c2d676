"""What several tests read and none changes, made once by the first that asks, for this build of the program."""

import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable


def recorded(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """The folder `name` as `make(folder)` filled it. Without $KERNELMILL_RECORDED, which ctest sets, each test process
    makes its own, and the caller's clean-up of the temporary folder ends it."""
    place = os.environ.get("KERNELMILL_RECORDED")
    if not place:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"kernelmill-{name}-"))
        make(folder)
        return folder
    program = os.stat(os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill"))
    root = pathlib.Path(place)
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{name}-{program.st_mtime_ns}"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait for the one that makes it
        if not (folder / "complete").exists():
            for old in root.glob(f"{name}-*"):
                shutil.rmtree(old)
            folder.mkdir()
            make(folder)
            (folder / "complete").touch()
    return folder
