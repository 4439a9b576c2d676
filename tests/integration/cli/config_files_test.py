#!/usr/bin/python3
"""`config init` and `config diff`, values from files, lists that grow, and a user's own configuration."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")


class ConfigFiles(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.environment = {**os.environ, "HOME": home.name}
        self.environment.pop("XDG_CONFIG_HOME", None)

    def do(self, *words, code=0):
        done = subprocess.run(
            [PROGRAM, *words], cwd=self.home, env=self.environment, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def shown(self, *words):
        return json.loads(self.do("config", "show", *words, "--json", "--origin").stdout)

    def test_init_writes_what_validates_and_replaces_nothing(self):
        self.assertIn("kernelmill run kernelmill.json", self.do("config", "init").stderr)
        self.do("config", "validate", "kernelmill.json")
        before = (self.home / "kernelmill.json").read_text()
        self.do("config", "init", "kernelmill.json", code=4)
        self.assertEqual((self.home / "kernelmill.json").read_text(), before)
        self.assertEqual(json.loads(self.do("config", "init", "other.json", "--json").stdout)["file"], "other.json")

    def test_diff_lists_what_differs_and_whether_it_is_another_experiment(self):
        (self.home / "a.json").write_text(json.dumps({"policy": {"base_url": "http://h:1/v1", "model": "m"}}))
        (self.home / "b.json").write_text(json.dumps({"policy": {"base_url": "http://h:2/v1", "model": "m"}}))
        place = json.loads(self.do("config", "diff", "a.json", "b.json", "--json").stdout)
        self.assertEqual([x["key"] for x in place["changes"]], ["policy.base_url"])
        self.assertTrue(place["same_experiment"])
        text = self.do("config", "diff", "a.json", "quickstart").stdout
        self.assertRegex(text, r"evaluation.timing.half_width +0.03 +0.05 +what")
        self.assertIn("no key differs", self.do("config", "diff", "quickstart", "quickstart").stderr)
        self.do("config", "diff", "quickstart", "none", code=3)

    def test_values_come_from_files_and_lists_grow(self):
        (self.home / "ids.txt").write_text("# the ones of today\nnative/gelu\nnative/softmax\n")
        config = self.shown("quickstart", "tasks.ids=@ids.txt", "tasks.ids+=native/matmul")["config"]
        self.assertEqual(config["tasks"]["ids"], ["native/gelu", "native/softmax", "native/matmul"])
        self.assertIn("none.txt", self.do("config", "show", "quickstart", "tasks.ids=@none.txt", code=3).stderr)

    def test_a_users_own_file_lies_below_the_others(self):
        own = self.home / ".config/kernelmill/config.json"
        own.parent.mkdir(parents=True)
        own.write_text(json.dumps({"tasks": {"group_size": 7}, "log": {"level": "warn"}}))
        found = self.shown("quickstart")
        self.assertEqual(found["config"]["tasks"]["group_size"], 4)
        self.assertEqual(found["config"]["log"]["level"], "warn")
        self.assertIn("/.config/kernelmill/config.json:1", found["origins"]["log.level"])
        self.environment["XDG_CONFIG_HOME"] = str(self.home / "elsewhere")
        self.assertNotIn("log", self.shown("quickstart")["config"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
