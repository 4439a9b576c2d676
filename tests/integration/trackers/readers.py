"""Readers that others wrote: TensorBoard's own, and OpenTelemetry's protocol definitions.

Debian has neither. The first test that wants them makes a virtual environment below the build folder; without a
network, or with KERNELMILL_OFFLINE set, such tests are skipped and say so. KERNELMILL_READER_PYTHON names a Python
that has them.
"""

import fcntl
import json
import os
import pathlib
import struct
import subprocess

WANTED = pathlib.Path(__file__).with_name("readers.txt")
BUILD = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"]).parent


def python():
    """(path of a Python that has the readers, "") or (None, why not)."""
    if given := os.environ.get("KERNELMILL_READER_PYTHON"):
        return given, ""
    if os.environ.get("KERNELMILL_OFFLINE"):
        return None, "KERNELMILL_OFFLINE is set"
    home = BUILD / "tests" / "readers"
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made, done = home / "venv", home / "made"
        wanted = WANTED.read_text()
        if not done.exists() or done.read_text() != wanted:
            for command in (
                ["/usr/bin/python3", "-m", "venv", "--clear", str(made)],
                [
                    str(made / "bin/pip"),
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--retries",
                    "1",
                    "--timeout",
                    "20",
                    "--requirement",
                    str(WANTED),
                ],
            ):
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode != 0:
                    return None, f"{' '.join(command[:3])} failed: {(ended.stderr or ended.stdout).strip()[-300:]}"
            done.write_text(wanted)
        return str(made / "bin/python"), ""


def read_with(program, *arguments, given=""):
    """The JSON that `program`, a text of Python, prints."""
    executable, _ = python()
    done = subprocess.run(
        [executable, "-B", "-c", program, *arguments], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing import event_accumulator
read = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
read.Reload()
tags = read.Tags()
print(json.dumps({
    "scalars": {t: [[x.step, x.wall_time, x.value] for x in read.Scalars(t)] for t in tags["scalars"]},
    "histograms": {t: [[x.step, x.histogram_value.num, x.histogram_value.min, x.histogram_value.max,
                        sum(x.histogram_value.bucket)] for x in read.Histograms(t)] for t in tags["histograms"]},
}))
"""

# Every field of the request must be one of the protocol's: an unknown one is an error.
OTLP = """
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
bodies = json.load(sys.stdin)
for body in bodies:
    # OTLP's JSON writes ids in hexadecimal digits, protobuf's in base64.
    import base64
    for resource in body["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
kept = []
for body in bodies:
    read = json_format.Parse(json.dumps(body), ExportTraceServiceRequest())
    ExportTraceServiceRequest.FromString(read.SerializeToString())
    for resource in read.resource_spans:
        for scope in resource.scope_spans:
            for x in scope.spans:
                kept.append({"trace": x.trace_id.hex(), "id": x.span_id.hex(), "parent": x.parent_span_id.hex(),
                             "name": x.name, "kind": x.kind, "start": x.start_time_unix_nano,
                             "end": x.end_time_unix_nano, "events": [e.name for e in x.events],
                             "attributes": {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in x.attributes
                                            if a.value.WhichOneof("value") != "array_value"},
                             "status": x.status.code,
                             "service": {a.key: a.value.string_value for a in resource.resource.attributes}})
print(json.dumps(kept))
"""


# -- our own -----------------------------------------------------------------------------------------------------


def crc32c(data):
    x = 0xFFFFFFFF
    for byte in data:
        x ^= byte
        for _ in range(8):
            x = (x >> 1) ^ (0x82F63B78 if x & 1 else 0)
    return x ^ 0xFFFFFFFF


def masked(data):
    x = crc32c(data)
    return (((x >> 15) | (x << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The records of an event file; every byte must belong to one."""
    result = []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        body = data[12 : 12 + size]
        assert len(body) == size and struct.unpack("<I", data[12 + size : 16 + size])[0] == masked(body)
        result.append(body)
        data = data[16 + size :]
    return result


def fields(data):
    """[(number, value)] of a protobuf message; bytes of what has a length, integers, raw bytes of the others."""

    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value, at

    at, result = 0, []
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(at)
            value, at = data[at : at + size], at + size
        result.append((key >> 3, value))
    return result


def scalars(data):
    """[(step, {tag: value})] of an event file, after its first record."""
    first, *others = records(data)
    assert (3, b"brain.Event:2") in fields(first)
    result = []
    for record in others:
        event = dict(fields(record))
        values = {}
        for _, value in fields(event[5]):
            parts = dict(fields(value))
            if 2 in parts:
                values[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
        result.append((event.get(2, 0), values))
    return result
