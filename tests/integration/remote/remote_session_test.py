#!/usr/bin/python3
"""`--on HOST`: commands on another machine, also over a connection that breaks."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
import two_hosts  # noqa: E402
from two_hosts import PROGRAM  # noqa: E402

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        two_hosts.enter_a_namespace()
        cls.hosts = two_hosts.TwoHosts()
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        self.work = self.hosts.root / self.id().rsplit(".", 1)[1]
        self.work.mkdir()
        (self.work / "good.cpp").write_text(serving.GOOD)
        (self.work / "broken.cpp").write_text(serving.BROKEN)

    def tearDown(self):
        self.assertEqual(self.hosts.sessions(), [], "a session is left on the host")
        records = self.hosts.home / ".local/state/kernelmill/remote"
        self.assertEqual(list(records.glob("*")) if records.is_dir() else [], [], "a record is left here")

    def do(self, *words, code=0, **environment):
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=self.work,
            env=self.hosts.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if code is None:
            self.assertNotEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        else:
            self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def start(self, *words):
        process = subprocess.Popen(
            [PROGRAM, *words],
            cwd=self.work,
            env=self.hosts.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, process, what):
        """The lines of stderr up to one with `what`."""
        lines = []
        for line in process.stderr:
            lines.append(line)
            if what in line:
                return lines
        self.fail(("".join(lines), process.stdout.read()))

    def run_words(self, name, *more, turns=2, latency_ms=5):
        script = serving.write_script(self.work, serving.replies(serving.BROKEN, serving.GOOD), latency_ms)
        return [*serving.run_arguments(f"runs/{name}", script, 2, turns, more)[1:], "--on", "far"]

    # -- commands -----------------------------------------------------------------------------------

    def test_a_verdict_is_the_same_as_here(self):
        words = ["eval", "--task", "native/row_sum", "--no-timing", "--backend", "cpu", "good.cpp"]
        there = json.loads(self.do(*words, "--json", "--on", "far").stdout)
        here = json.loads(self.do(*words, "--json").stdout)
        self.assertEqual(there.keys(), here.keys())
        for key in ("outcome", "candidate_sha256", "gates"):
            self.assertEqual(there.get(key), here.get(key), key)
        again = self.do(*words, "--on", "far")
        self.assertNotIn("bringing Kernelmill", again.stderr, "it is brought once")
        self.assertNotIn("sending", again.stderr, "known files are not sent again")

    def test_output_and_exit_code_are_the_commands(self):
        words = ["eval", "--task", "native/row_sum", "--no-timing", "--backend", "cpu"]
        text = self.do(*words, "broken.cpp", "--on", "far").stdout
        self.assertIn("nonsense", text)
        wrong = self.do(*words, "good.cpp", "--seed", "xyz", "--on", "far", code=2)
        self.assertIn("seed", wrong.stderr)
        with open(self.work / "good.cpp") as stdin:
            done = subprocess.run(
                [PROGRAM, *words, "-", "--on", "far", "--json"],
                cwd=self.work,
                env=self.hosts.environment(),
                stdin=stdin,
                capture_output=True,
                text=True,
                check=True,
            )
        self.assertEqual(json.loads(done.stdout)["outcome"], "accepted")

    def test_a_bundle_and_a_task_of_ones_own_travel(self):
        own = self.work / "own tasks" / "mine" / "sum"
        shutil.copytree(SOURCE / "configs/tasks/native/row_sum", own)
        task = json.loads((own / "task.json").read_text())
        if "id" in task:
            task["id"] = "mine/sum"
            (own / "task.json").write_text(json.dumps(task))
        words = ["eval", "--task", "mine/sum", "--root", "own tasks", "--no-timing", "--backend", "cpu"]
        self.do(*words, "good.cpp", "--bundle", "found/here", "--on", "far")
        self.do("bundle", "verify", "found/here")
        refused = self.do(*words, "good.cpp", "--bundle", "found/here", "--on", "far", code=4)
        self.assertIn("not a new or empty folder", refused.stderr)

    def test_a_batch_names_files_of_other_folders(self):
        (self.work / "sub").mkdir()
        (self.work / "sub" / "b.ndjson").write_text(
            '{"task": "native/row_sum", "file": "../good.cpp", "name": "up"}\n'
            + json.dumps({"task": "native/row_sum", "file": str(self.work / "broken.cpp")})
            + "\n"
        )
        words = ["judge", "sub/b.ndjson", "--no-timing", "--backend", "cpu", "--on", "far"]
        lines = [json.loads(line) for line in self.do(*words).stdout.splitlines()]
        self.assertEqual({x["name"] for x in lines}, {"up", str(self.work / "broken.cpp")})
        self.assertEqual({x["outcome"] for x in lines}, {"accepted", "rejected"})

    def test_a_run_comes_back_whole(self):
        done = self.do(*self.run_words("first"), "--bundle", "proof")
        self.assertIn("finished: 1 group, 2 episodes", done.stdout)
        self.assertTrue((self.work / "runs/first/metrics.jsonl").is_file())
        self.do("fsck", "runs/first")
        shown = json.loads(self.do("show", "runs/first/g0.e0.t1", "--json").stdout)
        self.assertTrue(shown)
        self.do("bundle", "verify", "proof")
        again = self.do(*self.run_words("first"), code=4)
        self.assertIn("runs/first exists", again.stderr)

    def test_profile_and_bench_go_there_too(self):
        words = ["--task", "native/row_sum", "good.cpp", "--on", "far", "--json"]
        rows = json.loads(self.do("bench", *words, "--backend", "cpu", "--evaluations", "1").stdout)["shapes"]
        self.assertTrue(rows)
        done = subprocess.run(
            [PROGRAM, "profile", *words],
            cwd=self.work,
            env=self.hosts.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertNotIn("remote_", done.stderr)  # without a GPU it says so, as it would here

    def test_a_terminal_here_is_one_there(self):
        words = [PROGRAM, "eval", "--task", "native/row_sum", "--no-timing", "--backend", "cpu", "broken.cpp"]
        there = self.in_a_terminal([*words, "--on", "far"])
        here = self.in_a_terminal(words)
        for text in ("\x1b[", "compiling", "rejected"):
            self.assertIn(text, here)
            self.assertIn(text, there)
        self.assertNotIn("\r\r\n", there)

    def in_a_terminal(self, words):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(words[0], words, self.hosts.environment(TERM="xterm-256color"))
        text = b""
        while part := self.read(terminal):
            text += part
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0, text)
        return text.decode()

    def read(self, terminal):
        try:
            return os.read(terminal, 65536)
        except OSError:  # no process has it any more
            return b""

    def test_forms_of_output_are_the_commands(self):
        words = ["bench", "--task", "native/row_sum", "good.cpp", "--backend", "cpu", "--evaluations", "1"]
        words += ["--shapes", "rows=8,cols=8", "--on", "far"]
        self.assertIn("rows", self.do(*words, "-o", "csv").stdout)
        self.assertIn("schema_version", self.do(*words, "-o", "yaml").stdout)

    def test_a_run_that_was_stopped_there_goes_on_here(self):
        script = serving.write_script(self.work, serving.replies(serving.BROKEN, serving.GOOD), 300)
        servers = []
        for prefix in (["nsenter", "-n", "-t", str(self.hosts.holder.pid)], []):
            words = [*prefix, PROGRAM, "policy", "scripted", "--script", str(script)]
            server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=self.hosts.environment())
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            servers.append(server.stdout.readline().strip().rstrip("/"))
        words = [x for x in self.run_words("moved", "tasks.groups=6") if not x.startswith("policy.script=")]
        words += ["policy.kind=openai", "policy.model=test"]
        process = self.start(*words, f"policy.base_url={servers[0]}")
        self.wait_for(process, "run moved in")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, (out, err))
        done = self.do("resume", "runs/moved", f"policy.base_url={servers[1]}")
        self.assertIn("finished: 6 groups", done.stdout)

    def test_the_how_to_as_it_is_written(self):
        page = (SOURCE / "docs/how-to/use-a-remote-gpu.md").read_text()
        blocks = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        lines = [line for block in blocks for line in block.splitlines()]
        self.assertGreater(len(lines), 7)
        (self.work / "kernel.cu").write_text(serving.GOOD)
        line = json.dumps({"task": "native/row_sum", "file": "kernel.cu"})
        (self.work / "candidates.ndjson").write_text(line + "\n")
        # A session to list, to take up and to close; the host has no GPU.
        session = None
        for line in lines:
            if "remote " in line and session is None:
                process = self.start(*self.run_words("named", latency_ms=1500))
                self.wait_for(process, "run named in")
                process.kill()
                process.wait()
                (row,) = json.loads(self.do("remote", "ls", "gpu-box", "--json").stdout)["sessions"]
                session = row["session"]
            words = line.replace("3f0c9a52d1e8b764", session or "")
            if re.match("kernelmill (eval|bench|judge)", words):
                words = words.replace("kernelmill ", "kernelmill ", 1).replace(" --on", " --backend cpu --on", 1)
            if words.startswith("kernelmill bench"):
                words = words.replace(" --on", " --evaluations 1 --on")
            code = {"kernelmill profile": 1, "kernelmill remote close": 3}  # no GPU; attach closed it
            wanted = next((x for start, x in code.items() if words.startswith(start)), 0)
            done = subprocess.run(
                ["bash", "-c", words],
                cwd=self.work,
                env=self.hosts.environment(PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]),
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, wanted, (words, done.stdout, done.stderr))
        self.assertTrue(json.loads((self.work / "times.json").read_text())["shapes"])
        self.assertEqual(json.loads((self.work / "verdicts.ndjson").read_text())["outcome"], "accepted")

    # -- connections --------------------------------------------------------------------------------

    def test_a_killed_connection_is_taken_up(self):
        process = self.start(*self.run_words("killed", latency_ms=1500))
        self.wait_for(process, "run killed in")
        self.hosts.kill_connections()
        self.wait_for(process, "trying again")
        self.hosts.kill_connections()
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, (out, err))
        self.assertEqual(out.count("finished: 1 group"), 1, out)
        self.do("fsck", "runs/killed")

    def test_a_link_that_goes_down_and_up_loses_nothing(self):
        process = self.start(*self.run_words("cut", latency_ms=4000))
        self.wait_for(process, "run cut in")
        self.hosts.link("down")
        self.addCleanup(self.hosts.link, "up")
        self.wait_for(process, "trying again")
        self.wait_for(process, "trying again")
        self.hosts.link("up")
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, (out, err))
        self.assertEqual(out.count("finished: 1 group"), 1, out)

    def test_ctrl_c_is_the_commands(self):
        process = self.start(*self.run_words("stopped", "tasks.groups=50", latency_ms=1000))
        self.wait_for(process, "run stopped in")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, (out, err))
        self.assertIn("cancelled", out)
        self.do("show", "runs/stopped")

    def test_a_session_that_was_left_is_found_and_taken_up(self):
        process = self.start(*self.run_words("left", latency_ms=1500))
        self.wait_for(process, "run left in")
        process.kill()
        process.wait()
        (row,) = json.loads(self.do("remote", "ls", "far", "--json").stdout)["sessions"]
        self.assertTrue(row["started_here"])
        self.assertIn("run", row["command"])
        done = self.do("remote", "attach", "far", row["session"])
        self.assertIn("finished: 1 group", done.stdout)
        self.do("fsck", "runs/left")
        self.do("remote", "attach", "far", row["session"], code=3)

    def test_a_session_can_be_given_up(self):
        process = self.start(*self.run_words("given_up", "tasks.groups=50", latency_ms=1000))
        self.wait_for(process, "run given_up in")
        process.kill()
        process.wait()
        (row,) = json.loads(self.do("remote", "ls", "far", "--json").stdout)["sessions"]
        self.assertEqual(row["state"], "running")
        self.do("remote", "close", "far", row["session"])
        self.assertEqual(json.loads(self.do("remote", "ls", "far", "--json").stdout)["sessions"], [])
        self.do("remote", "close", "far", row["session"], code=3)
        for record in (self.hosts.home / ".local/state/kernelmill/remote").glob("*"):
            self.fail(record)

    # -- secrets ------------------------------------------------------------------------------------

    def test_no_variable_and_no_secret_travels(self):
        script = serving.write_script(self.work, serving.replies(serving.GOOD))
        document = json.loads(script.read_text())
        document["require_key_env"] = "NEAR_SECRET"
        script.write_text(json.dumps(document))
        words = [*serving.run_arguments("runs/secret", script, 1, 1)[1:], "--on", "far"]
        words.append("policy.api_key_env=NEAR_SECRET")
        done = self.do(*words, code=None, NEAR_SECRET="s3cr3t-value")
        self.assertIn("NEAR_SECRET", done.stderr)
        found = subprocess.run(["grep", "-rl", "s3cr3t-value", self.hosts.far], capture_output=True, check=False)
        self.assertEqual(found.stdout, b"")

    def test_an_address_that_may_hold_a_secret_is_refused(self):
        words = self.run_words("hook", "hooks.url=https://hooks.example.org/services/T0/B0/token")
        done = self.do(*words, code=2)
        self.assertIn("hooks.url may hold a secret", done.stderr)
        self.assertNotIn("token", done.stderr)

    def test_a_script_sends_nothing_from_outside_its_folder(self):
        script = self.work / "script.json"
        reply = {"task": "native/row_sum", "turn": 0, "kernel": "../../.ssh/id_ed25519"}
        script.write_text(json.dumps({"model": "test", "replies": [reply]}))
        words = [*serving.run_arguments("runs/outside", script, 1, 1)[1:], "--on", "far"]
        self.assertIn("outside its folder", self.do(*words, code=2).stderr)

    # -- hosts --------------------------------------------------------------------------------------

    def test_hosts_that_cannot_be_used_are_told_apart(self):
        words = ["eval", "--task", "native/row_sum", "good.cpp", "--on"]
        for host, code, text in (
            ("stranger", 77, "ssh stranger true"),
            ("locked", 77, "Permission denied"),
            ("nowhere", 69, "Connection refused"),
            ("no-such-host.invalid", 77, "check the name"),
            ("-oProxyCommand=x", 2, "no host"),
            ("far:7612", 2, "--head"),
        ):
            with self.subTest(host):
                done = self.do(*words[:-1], f"--on={host}", code=code)
                self.assertIn(text, done.stderr)
        missing = self.do(*words, "far", code=3, KERNELMILL_SSH="no-such-ssh")
        self.assertIn("openssh-client", missing.stderr)

    def test_a_full_disk_is_told(self):
        cache = self.hosts.far / "cache"
        cache.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", cache], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", cache], check=True)
        words = ["eval", "--task", "native/row_sum", "--backend", "cpu", "broken.cpp", "--on", "far"]
        done = self.do(*words, code=75)
        self.assertRegex(done.stderr, "No space left|free space")
        subprocess.run(["mount", "-o", "remount,size=400m", cache], check=True)
        self.do(*words)
        with open(cache / "fill", "wb", buffering=0) as fill, self.assertRaises(OSError):
            while True:
                fill.write(bytes(1 << 20))
        (self.work / "broken.cpp").write_text(serving.BROKEN + "//" + "x" * 900_000 + "\n")
        done = self.do(*words, code=75)
        self.assertRegex(done.stderr, "No space left")
        (cache / "fill").unlink()
        self.do(*words)

    def client_with(self, variable):
        """A client whose far shell has this variable and an empty cache."""
        client = self.work / "ssh"
        far = f"export {variable} XDG_CACHE_HOME={self.work}/c; $last"
        client.write_text(f'#!/bin/bash\nlast="${{@: -1}}"\nexec ssh -F {self.hosts.config} "${{@:1:$#-1}}" "{far}"\n')
        client.chmod(0o755)
        return str(client)

    def test_an_installed_one_of_the_same_build_serves(self):
        prefix = self.work / "prefix"
        shutil.copytree(os.path.dirname(PROGRAM), prefix / "bin", ignore=lambda _, names: {"fake_nvml"} & set(names))
        (prefix / "share").mkdir()
        (prefix / "share" / "kernelmill").symlink_to(SOURCE)
        ssh = self.client_with(f"PATH={prefix}/bin:\\$PATH")
        words = ["eval", "--task", "native/row_sum", "broken.cpp", "--no-timing", "--backend", "cpu", "--on", "far"]
        done = subprocess.run(
            [prefix / "bin" / "kernelmill", *words],
            cwd=self.work,
            env=self.hosts.environment(KERNELMILL_SSH=ssh),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        self.assertNotIn("bringing", done.stderr)
        self.assertEqual(list((self.work / "c/kernelmill/remote/programs").iterdir()), [])

    def test_a_machine_of_another_kind_gets_no_program(self):
        folder = self.work / "bin"
        folder.mkdir()
        (folder / "uname").write_text("#!/bin/sh\n[ $1 = -m ] && echo aarch64 || echo Linux\n")
        (folder / "uname").chmod(0o755)
        ssh = self.client_with(f"PATH={folder}:\\$PATH")
        words = ["eval", "--task", "native/row_sum", "good.cpp", "--on", "far"]
        done = self.do(*words, code=3, KERNELMILL_SSH=ssh)
        self.assertRegex(done.stderr, re.compile("Linux aarch64.*install the same Kernelmill there", re.DOTALL))


if __name__ == "__main__":
    if reason := two_hosts.why_not():
        print(f"skipped: {reason}")
        sys.exit(two_hosts.SKIP)
    unittest.main()
