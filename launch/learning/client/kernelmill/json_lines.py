"""Parquet as JSON lines, for `kernelmill index build`. It needs pyarrow: pip install 'kernelmill[parquet]'.

    python -m kernelmill.json_lines level_1.parquet --out level_1.jsonl

Rows are read a batch at a time, so memory is that of a batch.
"""

import argparse
import datetime
import decimal
import json
import math
import os
import pathlib
import sys
from typing import Any, List, Optional, Sequence, Union

Path = Union[str, pathlib.Path]


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as missing:
        raise ImportError(
            "Parquet is read by pyarrow, which is not installed: pip install 'kernelmill[parquet]'"
        ) from missing
    return pyarrow.parquet


def _plain(x: Any) -> Any:
    """What JSON has a form for. It has none for NaN and for bytes that are no text: they become null."""
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(one) for one in x]
    if isinstance(x, (datetime.date, datetime.time)):
        return x.isoformat()
    if isinstance(x, decimal.Decimal):
        return str(x)
    return None if isinstance(x, (bytes, datetime.timedelta)) else x


def to_json_lines(
    files: Sequence[Path], out: Path, columns: Optional[Sequence[str]] = None, rows_at_once: int = 256
) -> int:
    """Writes the rows of the Parquet files to `out`, one after the other; of all columns, or of those that are named.
    Returns the number of rows. `out` appears when it is whole."""
    parquet = _pyarrow_parquet()
    out = pathlib.Path(out)
    beside = out.with_name(out.name + ".new")
    count = 0
    try:
        with beside.open("w", encoding="utf-8") as to:
            for path in files:
                file = parquet.ParquetFile(path)
                missing = [x for x in columns or [] if x not in file.schema_arrow.names]
                if missing:
                    raise ValueError(f"{path} has no column {', '.join(missing)}: {', '.join(file.schema_arrow.names)}")
                for batch in file.iter_batches(batch_size=rows_at_once, columns=columns):
                    for row in batch.to_pylist():
                        to.write(json.dumps(_plain(row), ensure_ascii=False) + "\n")
                        count += 1
        os.replace(beside, out)
    finally:
        beside.unlink(missing_ok=True)
    return count


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernelmill.json_lines", description="Writes Parquet as JSON lines."
    )
    parser.add_argument("files", nargs="+", help="Parquet")
    parser.add_argument("--out", required=True, help="a file")
    parser.add_argument("--columns", help="only these, with commas between them")
    given = parser.parse_args(arguments)
    columns: Optional[List[str]] = given.columns.split(",") if given.columns else None
    try:
        count = to_json_lines(given.files, given.out, columns)
    except (OSError, ImportError, ValueError) as why:
        print(f"kernelmill.json_lines: {why}", file=sys.stderr)
        return 1
    print(f"wrote {given.out}: {count} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
