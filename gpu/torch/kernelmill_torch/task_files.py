"""Files of a task's folder, which a stranger may have filled: only what lies in it is read."""

import os
import stat


def path_in(folder: str, name: str) -> str:
    """Where a regular file of the folder lies, which may itself be a link. Raises OSError with words for what leads out of it."""
    base = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(base, name))
    if os.path.commonpath((base, path)) != base:
        raise OSError(f"failed to read {os.path.join(folder, name)}: it is a link that leads out of its folder")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"failed to read {os.path.join(folder, name)}: it is no regular file")
    return path
