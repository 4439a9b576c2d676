"""A dataset that `kernelmill export` wrote, as Parquet. It needs pyarrow: pip install 'kernelmill[parquet]'.

    python -m kernelmill.parquet sft --out sft-parquet

Rows are read twice, a row group at a time: once for the types of all of them, once to write.
So memory is that of a row group.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

Path = Union[str, pathlib.Path]


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as missing:
        raise ImportError(
            "Parquet is written by pyarrow, which is not installed: pip install 'kernelmill[parquet]'"
        ) from missing
    return pyarrow


def _groups(pa: Any, path: pathlib.Path, rows: int) -> Iterator[List[Any]]:
    """Lists of at most `rows` rows of a .jsonl or .jsonl.zst."""
    group: List[Any] = []
    with pa.input_stream(str(path), compression="zstd" if path.name.endswith(".zst") else None) as stream:
        rest = b""
        while part := stream.read(1 << 20):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line:
                    group.append(json.loads(line))
                if len(group) == rows:
                    yield group
                    group = []
        if rest:
            group.append(json.loads(rest))
    if group:
        yield group


def _schema(pa: Any, path: pathlib.Path, rows: int) -> Any:
    schema = None
    for group in _groups(pa, path, rows):
        of_group = pa.Table.from_pylist(group).schema
        schema = of_group if schema is None else pa.unify_schemas([schema, of_group], promote_options="permissive")
    return schema


def _write(pa: Any, path: pathlib.Path, target: pathlib.Path, rows: int) -> int:
    schema, count = _schema(pa, path, rows), 0
    if schema is None:
        return 0
    with pa.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for group in _groups(pa, path, rows):
            writer.write_table(pa.Table.from_pylist(group, schema=schema), row_group_size=rows)
            count += len(group)
    return count


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def to_parquet(directory: Path, out: Path, rows_per_group: int = 1024) -> Dict[str, int]:
    """Writes the export in `directory` as a new folder `out`: data/SPLIT.parquet, the data card, PROVENANCE.json with
    the hashes of the new files. Returns the number of rows by split."""
    pa = _pyarrow()
    directory, out = pathlib.Path(directory), pathlib.Path(out)
    if rows_per_group < 1:
        raise ValueError("rows_per_group is at least 1")
    provenance = json.loads((directory / "PROVENANCE.json").read_text())
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty: name another folder")
    (out / "data").mkdir(parents=True, exist_ok=True)
    counts: Dict[str, int] = {}
    files: List[Dict[str, Any]] = []
    for path in sorted((directory / "data").iterdir()):
        split = path.name.split(".")[0]
        target = out / "data" / f"{split}.parquet"
        counts[split] = _write(pa, path, target, rows_per_group)
        files.append(
            {
                "path": f"data/{target.name}",
                "split": split,
                "rows": counts[split],
                "bytes": target.stat().st_size,
                "sha256": _sha256(target),
            }
        )
    card = (directory / "README.md").read_text()
    # Parquet has the types in itself; the card's would say the same in other words.
    card = re.sub(r"\.jsonl(\.zst)?\b", ".parquet", card)
    (out / "README.md").write_text(card)
    provenance["parquet_of"] = provenance.get("files")
    provenance["files"] = files
    (out / "PROVENANCE.json").write_text(json.dumps(provenance, indent=2) + "\n")
    return counts


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernelmill.parquet", description="Writes an export as Parquet.")
    parser.add_argument("directory", help="what `kernelmill export --out DIR` wrote")
    parser.add_argument("--out", required=True, help="a new folder")
    parser.add_argument("--rows-per-group", type=int, default=1024)
    given = parser.parse_args(arguments)
    try:
        counts = to_parquet(given.directory, given.out, given.rows_per_group)
    except (OSError, ImportError, ValueError) as why:
        print(f"kernelmill.parquet: {why}", file=sys.stderr)
        return 1
    for split, rows in counts.items():
        print(f"wrote {given.out}/data/{split}.parquet: {rows} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
