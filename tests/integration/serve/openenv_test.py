#!/usr/bin/env python3
"""OpenEnv's protocol over /ws: bare frames, and OpenEnv's own client where it is installed.

KERNELMILL_TRAINER_PYTHON has the package openenv (tests/trainers.sh).
"""

import base64
import contextlib
import http.client
import importlib.util
import json
import os
import secrets
import socket
import struct
import sys
import tempfile
import unittest
import urllib.parse

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])

import kernels  # noqa: E402, F401 - puts the client on the path

# isort: split
import kernelmill  # noqa: E402
from kernels import BROKEN, GOOD, PROGRAM, TASK, TASKS, WRONG  # noqa: E402

FIELDS = {
    "problem_id",
    "problem_description",
    "reference_code",
    "gpu_info",
    "turn",
    "max_turns",
    "feedback",
    "compilation_success",
    "compilation_error",
    "correctness_pass",
    "max_diff",
    "speedup",
}


class Socket:
    """A client of RFC 6455 that can also do what it must not."""

    def __init__(self, url, token="", **headers):
        parts = urllib.parse.urlsplit(url)
        self.link = socket.create_connection((parts.hostname, parts.port), 600)
        given = {
            "Host": parts.netloc,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(secrets.token_bytes(16)).decode(),
        }
        given.update({"Authorization": "Bearer " + token} if token else {}, **headers)
        text = "".join(f"{k}: {v}\r\n" for k, v in given.items() if v)
        self.link.sendall(f"GET /ws HTTP/1.1\r\n{text}\r\n".encode())
        self.file = self.link.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def send(self, data, opcode=1):
        self.link.sendall(self.frame(data, opcode))

    @staticmethod
    def frame(data, opcode=1):
        data = data if isinstance(data, bytes) else data.encode()
        size = (
            struct.pack("!B", 0x80 | len(data))
            if len(data) < 126
            else struct.pack("!BH", 0xFE, len(data))
            if len(data) < 65536
            else struct.pack("!BQ", 0xFF, len(data))
        )
        return bytes([0x80 | opcode]) + size + bytes(4) + data

    def receive(self):
        """(opcode, data) of a frame; None when the server has gone."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 0x7F
        if size > 125:
            size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
        return head[0] & 0xF, self.file.read(size)

    def ask(self, message):
        self.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
        return self.answer()

    def answer(self):
        opcode, data = self.receive()
        assert opcode == 1, (opcode, data)
        return json.loads(data)

    def close(self):
        self.file.close()
        self.link.close()


class OpenEnv(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        os.environ["XDG_CACHE_HOME"] = cls.stack.enter_context(tempfile.TemporaryDirectory())
        cls.client = cls.stack.enter_context(
            kernelmill.serve("cpu", program=PROGRAM, tasks=str(TASKS), options=["--no-timing"])
        )
        cls.client.timeout = 600

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def connect(self, **headers):
        result = Socket(self.client.url, self.client._token, **headers)
        self.addCleanup(result.close)
        return result

    def get(self, path, token=True):
        parts = urllib.parse.urlsplit(self.client.url)
        link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=600)
        link.request("GET", path, headers={"Authorization": "Bearer " + self.client._token} if token else {})
        answer = link.getresponse()
        result = answer.status, json.loads(answer.read())
        link.close()
        return result

    def test_an_episode(self):
        ws = self.connect()
        first = ws.ask({"type": "reset", "data": {"problem_id": TASK, "max_turns": 3, "episode_id": "mine"}})
        self.assertEqual((first["type"], first["data"]["reward"], first["data"]["done"]), ("observation", None, False))
        seen = first["data"]["observation"]
        self.assertEqual((set(seen), seen["problem_id"], seen["turn"], seen["max_turns"]), (FIELDS, TASK, 0, 3))
        self.assertIn("void reference", seen["reference_code"])
        rewards = []
        for code, compiled, right, done in (
            (BROKEN, False, None, False),
            (f"Look:\n```cpp\n{GOOD}```\n", True, True, False),
            (WRONG, True, False, True),
        ):
            found = ws.ask({"type": "step", "data": {"code": code, "metadata": {}}})["data"]
            seen = found["observation"]
            rewards.append(found["reward"])
            self.assertEqual(
                (set(seen), seen["compilation_success"], seen["correctness_pass"], found["done"]),
                (FIELDS, compiled, right, done),
            )
            self.assertEqual(bool(seen["compilation_error"]), not compiled)
            self.assertIn(f"Turn {len(rewards)} of 3:", seen["feedback"])
        self.assertEqual((rewards[0], rewards[2]), (0.0, 0.0))
        self.assertGreater(rewards[1], 0)
        self.assertGreater(seen["max_diff"], 0)
        state = ws.ask({"type": "state"})["data"]
        self.assertEqual(
            state,
            {
                "episode_id": "mine",
                "step_count": 3,
                "problem_id": TASK,
                "turn": 3,
                "max_turns": 3,
                "best_speedup": 0,
                "solved": True,
            },
        )
        self.assertEqual(ws.ask({"type": "step", "data": {"code": GOOD}})["data"]["code"], "SESSION_ERROR")
        self.assertEqual(
            ws.ask({"type": "reset", "data": {"problem_id": TASK}})["data"]["observation"]["max_turns"], 10
        )
        self.assertEqual(ws.ask({"type": "state"})["data"]["solved"], False)
        ws.send(json.dumps({"type": "close"}))
        self.assertEqual(ws.receive()[0], 8)

    def test_a_seed_chooses_the_same_problem(self):
        asked = [
            self.connect().ask({"type": "reset", "data": {"seed": x}})["data"]["observation"]["problem_id"]
            for x in (5, 5, 6)
        ]
        self.assertEqual(asked[0], asked[1])
        self.assertNotEqual(asked[0], asked[2])

    def test_what_is_wrong_has_a_code(self):
        ws = self.connect()
        for message, code in (
            ("{", "INVALID_JSON"),
            ("[" * 5000, "INVALID_JSON"),
            ("[]", "VALIDATION_ERROR"),
            ({"type": 3}, "VALIDATION_ERROR"),
            ({"type": "mcp"}, "UNKNOWN_TYPE"),
            ({"type": "reset", "data": []}, "VALIDATION_ERROR"),
            ({"type": "step", "data": {"code": GOOD}}, "SESSION_ERROR"),
            ({"type": "reset", "data": {"problem_id": "native/row_smu"}}, "VALIDATION_ERROR"),
            ({"type": "reset", "data": {"max_turns": 0}}, "VALIDATION_ERROR"),
            ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR"),
        ):
            said = ws.ask(message)
            self.assertEqual((said["type"], said["data"]["code"]), ("error", code), message)
            self.assertTrue(said["data"]["message"])
        self.assertEqual(ws.ask({"type": "state"})["data"]["episode_id"], None)
        ws.ask({"type": "reset", "data": {"problem_id": TASK}})
        for data in ({}, {"code": 3}):
            self.assertEqual(ws.ask({"type": "step", "data": data})["data"]["code"], "VALIDATION_ERROR")
        self.assertEqual(ws.ask(b"\xff\xfe")["data"]["code"], "INVALID_JSON")

    def test_messages_wait_for_the_step_before_them(self):
        ws = self.connect()
        for message in (
            {"type": "reset", "data": {"problem_id": TASK}},
            {"type": "step", "data": {"code": GOOD}},
            {"type": "state"},
        ):
            ws.send(json.dumps(message))
        self.assertEqual([ws.answer()["type"] for _ in range(3)], ["observation", "observation", "state"])
        # All are there at once, and a source that was not compiled before takes longer than to read them.
        step = {"type": "step", "data": {"code": WRONG + "// " + secrets.token_hex()}}
        ws.link.sendall(b"".join(ws.frame(json.dumps(x)) for x in [step] + [{"type": "state"}] * 100))
        said = [ws.answer() for _ in range(101)]
        self.assertIn("CAPACITY_REACHED", {x["data"].get("code") for x in said})
        self.assertEqual([x["type"] for x in said].count("observation"), 1)

    def test_a_client_without_a_token_is_refused_before_the_socket_opens(self):
        for status, headers in (
            (401, {"Authorization": "Bearer wrong"}),
            (403, {"Origin": "http://elsewhere.example"}),
            (421, {"Host": "elsewhere.example"}),
            (426, {"Upgrade": ""}),
        ):
            self.assertEqual(self.connect(**headers).status, status, headers)

    def test_broken_clients_harm_no_others(self):
        for data, opcode in ((b"x" * 100, 3), (b"x" * (9 << 20), 1)):
            ws = self.connect()
            with contextlib.suppress(ConnectionError):
                ws.send(data, opcode)
                while (frame := ws.receive()) is not None:
                    self.assertEqual(frame[0], 8)
        half = self.connect()
        half.link.sendall(b"\x81\xfe")
        half.close()
        leaving = self.connect()
        leaving.ask({"type": "reset", "data": {"problem_id": TASK}})
        leaving.send(json.dumps({"type": "step", "data": {"code": GOOD}}))
        leaving.close()
        ws = self.connect()
        ws.send(b"there", 9)
        self.assertEqual(ws.receive(), (10, b"there"))
        self.assertEqual(ws.ask({"type": "reset"})["type"], "observation")

    def test_many_sessions_at_once(self):
        all_of_them = [self.connect() for _ in range(300)]
        for ws in all_of_them:
            ws.send(json.dumps({"type": "reset", "data": {"problem_id": TASK}}))
        self.assertEqual({ws.answer()["data"]["observation"]["problem_id"] for ws in all_of_them}, {TASK})

    def test_its_schema_names_every_field(self):
        status, schema = self.get("/schema")
        self.assertEqual((status, set(schema["observation"]["properties"])), (200, FIELDS))
        self.assertEqual(schema["action"]["required"], ["code"])
        self.assertEqual(set(schema["state"]["properties"]), set(self.connect().ask({"type": "state"})["data"]))
        self.assertEqual(self.get("/metadata")[1]["name"], "kernelmill")
        self.assertEqual(self.get("/schema", token=False)[0], 401)

    def post(self, path, body):
        link = http.client.HTTPConnection(urllib.parse.urlsplit(self.client.url).netloc, timeout=600)
        with contextlib.closing(link):
            headers = {"Authorization": "Bearer " + self.client._token, "Content-Type": "application/json"}
            link.request("POST", path, json.dumps(body), headers)
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())

    def test_its_task_api_lists_what_an_episode_begins_with(self):
        self.assertEqual(self.get("/list_environments")[1], ["kernelmill"])
        splits = self.get("/kernelmill/splits")[1]
        self.assertEqual([(x["name"], x["type"]) for x in splits], [("train", "train"), ("dev", "validation")])
        known = []
        for split in ("train", "dev"):
            tasks = self.post("/kernelmill/tasks", {"split": split})[1]["tasks"]
            self.assertEqual(self.post("/kernelmill/num_tasks", {"split": split})[1], {"num_tasks": len(tasks)})
            self.assertEqual([x["index"] for x in tasks], list(range(len(tasks))))
            known += [x["id"] for x in tasks]
        self.assertEqual(sorted(known), sorted(x.id for x in self.client.tasks()))
        last = self.post("/kernelmill/task_range", {"split": "train", "start": -1})[1]["tasks"]
        index = last[0]["index"]
        self.assertEqual(self.post("/kernelmill/task", {"split": "train", "index": index})[1]["task"], last[0])
        begun = self.connect().ask({"type": "reset", "data": {"split": "train", "index": index}})
        self.assertEqual(begun["data"]["observation"]["problem_id"], last[0]["id"])
        for path, body in (
            ("task", {"split": "train", "index": index + 1}),
            ("task", {"split": "train", "index": -1}),
            ("tasks", {"split": "test"}),
            ("tasks", {}),
        ):
            self.assertEqual(self.post("/kernelmill/" + path, body)[0], 400, body)
        self.assertEqual(self.connect().ask({"type": "reset", "data": {"split": "train"}})["type"], "error")

    @unittest.skipUnless(importlib.util.find_spec("openenv"), "openenv is not installed")
    def test_openenvs_own_client(self):
        from openenv.core.generic_client import GenericEnvClient

        with kernelmill.serve(
            "cpu", program=PROGRAM, tasks=str(TASKS), options=["--no-timing"], with_token=False
        ) as client:
            with GenericEnvClient(base_url=client.url).sync() as env:
                first = env.reset(problem_id=TASK, max_turns=2)
                self.assertEqual((first.done, first.reward, first.observation["problem_id"]), (False, None, TASK))
                wrong, good = env.step({"code": WRONG}), env.step({"code": GOOD})
                self.assertEqual((wrong.reward, wrong.done, good.done), (0.0, False, True))
                self.assertGreater(good.reward, 0)
                self.assertEqual(env.state()["step_count"], 2)
                with self.assertRaises(RuntimeError) as caught:
                    env.step({"code": GOOD})
                self.assertIn("SESSION_ERROR", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
