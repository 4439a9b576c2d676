#!/usr/bin/python3
"""A far end that does what HOSTILE says, in place of ssh. Speaks the frames of launch/remote/frames.hpp."""

import hashlib
import json
import os
import sys

OUT, IN = sys.stdout.buffer, sys.stdin.buffer
mode = os.environ["HOSTILE"]


def say(verb, payload=b"", **head):
    OUT.write(json.dumps({"verb": verb, "bytes": len(payload), **head}).encode() + b"\n" + payload)
    OUT.flush()


def hear():
    line = IN.readline()
    if not line:
        sys.exit(0)
    head = json.loads(line)
    return head, IN.read(head["bytes"])


def files(*entries):
    say("files", json.dumps(list(entries)).encode(), left_out=0)


def entry(path, content=b"text", **more):
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **more}


def on_list():
    if mode == "leads_out":
        files(entry("found/../../escaped"))
    elif mode == "absolute":
        files(entry("/tmp/escaped"))
    elif mode == "other_place":
        files(entry("elsewhere/x"))
    elif mode == "twice":
        files(entry("found/x"), entry("found/x"))
    elif mode == "control_bytes":
        files(entry("found/\x1b]0;owned\x07"))
    elif mode == "too_large":
        files({**entry("found/x"), "size": 1 << 39})
    elif mode == "no_list":
        say("files", b"\xff\xfe{")
    else:
        files(entry("found/x"))


def on_get():
    if mode == "wrong_hash":
        say("file", b"tezt", path="found/x", offset=0, last=True)
    elif mode == "endless_file":
        while True:
            say("file", b"x" * 1000, path="found/x", offset=0, last=False)
    elif mode == "another_file":
        say("file", b"text", path="found/y", offset=0, last=True)
    else:
        say("file", b"text", path="found/x", offset=0, last=True)


def on_follow():
    if mode == "endless_output":
        offset, piece = 0, b"x" * (1 << 20)
        while True:
            say("data", piece, stream="stdout", offset=offset)
            offset += len(piece)
    if mode == "out_of_order":
        say("data", b"x", stream="stdout", offset=5)
    if mode == "no_stream":
        say("data", b"x", stream="/etc/passwd", offset=0)
    if mode == "no_exit_code":
        say("ended", code=10**9, signal=0)
    say("data", b"out\n", stream="stdout", offset=0)
    say("ended", code=0, signal=0)


def main():
    if mode == "endless_banner":
        while True:
            OUT.write(b"welcome\n" * 1000)
    OUT.write(b"Last login: today\n\nkernelmill-remote ready\n")
    OUT.flush()
    while True:
        head, _ = hear()
        verb = head["verb"]
        if verb == "hello":
            say("hello", protocol=99 if mode == "version" else 1, build="x", host="y")
        elif verb == "open" and mode == "endless_line":
            OUT.write(b"x" * (1 << 20))
            OUT.flush()
        elif verb == "open" and mode == "asks_for_others":
            say("missing", json.dumps([{"sha256": "a" * 64, "size": 1, "have": 0}]).encode())
        elif verb == "open" and mode == "error_with_escapes":
            say("error", category="not_found", message="\x1b]0;owned\x07" * 10, hint="x")
        elif verb == "open":
            say("missing", b"[]")
        elif verb == "start":
            say("started")
        elif verb == "follow":
            on_follow()
        elif verb == "list":
            on_list()
        elif verb == "get":
            on_get()
        elif verb == "close":
            say("closed")


try:
    main()
except BrokenPipeError:
    os._exit(0)
