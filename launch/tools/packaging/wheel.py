#!/usr/bin/python3
"""Makes a wheel of an unpacked tarball: `pip install FILE` gives the command kernelmill and the Python client.

    wheel.py FOLDER|TARBALL --out FOLDER        prints the path of the wheel

The wheel has the Python client of launch/learning/client, and the tarball's folder beside it as
kernelmill/installation. Wheels hold no links, so a library is there once, under the name that programs ask for. The
standard library and readelf make it. One tarball gives one wheel, byte for byte: its entries are sorted, and have the
time SOURCE_DATE_EPOCH."""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile

CLIENT = pathlib.Path(__file__).resolve().parents[2] / "learning/client"
PLACE = "kernelmill/installation"
# The client's source is the wheel itself, and systemd's units are of no use below a Python.
LEFT_OUT = ("share/kernelmill/client/", "lib/systemd/")


def soname_of(path):
    """The name under which programs ask for a library; its own where it has none."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return path.name
    said = subprocess.run(
        ["readelf", "-W", "-d", path],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout
    found = re.search(r"\(SONAME\)\s+Library soname: \[(.*?)\]", said)
    return found.group(1) if found else path.name


def files_of(stage):
    """(name in the package, file) of all that the wheel takes of an unpacked tarball."""
    taken = {}
    for path in sorted(stage.rglob("*")):
        name = path.relative_to(stage).as_posix()
        if not path.is_file() or path.is_symlink() or name.startswith(LEFT_OUT):
            continue
        if name.startswith("lib/kernelmill/"):
            name = f"lib/kernelmill/{soname_of(path)}"
        if taken.setdefault(name, path) is not path:
            sys.exit(f"wheel.py: {path.name} and {taken[name].name} are both {name}")
    for path in stage.rglob("*"):
        if path.is_symlink() and path.resolve() not in {x.resolve() for x in taken.values()}:
            sys.exit(f"wheel.py: {path} leads to nothing that is packed")
    return taken


def glibc_of(files):
    """The oldest glibc that the programs and libraries run with, as (2, 36)."""
    newest = (2, 17)
    for path in files:
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                found = re.findall(rb"\0GLIBC_2\.(\d+)\0", file.read())
                newest = max([newest] + [(2, int(x)) for x in found])
    return newest


def builders_glibc():
    """That of this machine: programs that are built here are tested with no older one."""
    return tuple(int(x) for x in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))


def metadata_of(project, readme):
    """METADATA of pyproject.toml's table."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License: {project['license']['text']}",
    ]
    for extra, needed in sorted(project.get("optional-dependencies", {}).items()):
        lines.append(f"Provides-Extra: {extra}")
        for one in needed:
            wanted, _, marker = one.partition(";")
            marker = f"({marker.strip()}) and " if marker else ""
            lines.append(f"Requires-Dist: {wanted.strip()} ; {marker}extra == '{extra}'")
    return "\n".join(lines) + f"\nDescription-Content-Type: text/markdown\n\n{readme}"


def entry(name, mode, moment):
    """An entry's head, with nothing in it of the machine that makes it."""
    made = zipfile.ZipInfo(name, moment)
    made.compress_type = zipfile.ZIP_DEFLATED
    made.create_system = 3
    made.external_attr = (0o100000 | mode) << 16
    return made


def write(path, contents, moment, record, level):
    """The archive, with RECORD as its last entry. Contents are (name, bytes or file, mode)."""
    rows = []
    with zipfile.ZipFile(path, "w", compresslevel=level) as archive:
        for name, data, mode in contents:
            if isinstance(data, pathlib.Path):
                data = data.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            archive.writestr(entry(name, mode, moment), data)
        archive.writestr(entry(record, 0o644, moment), "".join(rows) + f"{record},,\n")


def make(stage, out, level):
    """The wheel's path."""
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    if not (stage / "bin" / "kernelmill").is_file():
        sys.exit(f"wheel.py: {stage} is no unpacked tarball: it has no bin/kernelmill")
    said = subprocess.run([stage / "bin" / "kernelmill", "version"], capture_output=True, text=True, check=True).stdout
    if f"kernelmill {project['version']}" not in said:
        sys.exit(f"wheel.py: pyproject.toml says {project['version']}, the program {said.splitlines()[0]!r}")
    files = files_of(stage)
    glibc = max(glibc_of(files.values()), builders_glibc())
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_x86_64"
    information = f"kernelmill-{project['version']}.dist-info"
    texts = {
        "METADATA": metadata_of(project, (CLIENT / "README.md").read_text()),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: kernelmill\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": "[console_scripts]\n" + "".join(f"{k} = {v}\n" for k, v in project["scripts"].items()),
    }
    contents = [
        (x.relative_to(CLIENT).as_posix(), x, 0o644)
        for x in sorted([*(CLIENT / "kernelmill").rglob("*"), *CLIENT.glob("*.py")])
        if x.is_file() and x.suffix in (".py", ".typed")
    ]
    contents += [
        (f"{PLACE}/{name}", path, 0o755 if os.access(path, os.X_OK) else 0o644) for name, path in sorted(files.items())
    ]
    contents += [(f"{information}/{name}", text.encode(), 0o644) for name, text in sorted(texts.items())]
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800))[:6]
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"kernelmill-{project['version']}-{tag}.whl"
    write(path, contents, moment, f"{information}/RECORD", level)
    return path


def main():
    """Unpacks where it must, makes, prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--level", type=int, default=9, help="how hard to compress, 1 to 9")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as unpacked:
        stage = given.package
        if stage.is_file():
            with tarfile.open(stage) as archive:
                archive.extractall(unpacked)
            (stage,) = pathlib.Path(unpacked).iterdir()
        print(make(stage, given.out, given.level))


if __name__ == "__main__":
    main()
