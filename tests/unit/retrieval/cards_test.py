"""The cards' snippets: cards show them as they are, they compile, and both forms of a pair give equal results.

What this machine cannot compile, run or measure is counted in what the test prints.
"""

import pathlib
import tempfile
import unittest

from cards import build, check, corpus, measure


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cards = corpus.load()
        print(check.summary(cls.cards))

    def check(self, *languages):
        said = []
        found = check.check(self.cards, languages, said.append)
        print("\n".join(said))
        self.assertEqual(found, [], "\n".join(found))

    def test_cards_show_their_snippets(self):
        self.check()
        self.assertGreaterEqual(len(self.cards), 150)
        self.assertGreaterEqual(sum(bool(x.after) for x in self.cards), 95)
        self.assertTrue(any(x.measured for x in self.cards))

    def test_cpp(self):
        self.check("cpp")

    def test_cuda(self):
        self.check("cuda")

    def test_hip(self):
        self.check("hip")

    def test_pytorch(self):
        self.check("torch")

    def test_triton(self):
        self.check("triton")


class Faults(unittest.TestCase):
    """A corpus of one card, with and without a fault."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bench = "// bench: f(x float[64], y out float[64], n = 64)\n"
        self.body = "void f(const float* x, float* y, int n) {\n  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];\n}\n"
        self.write("snippets/a/after.cpp", self.bench + self.body)
        self.write("snippets/a/before.cpp", self.bench + self.body.replace("2 * x[i]", "x[i] + x[i]"))
        self.card = f"---\nid: a\ntitle: A\n---\nWords.\n\n```cpp\n{self.body}```\n"
        self.write("x/a.md", self.card)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(self):
        return check.check(corpus.load(self.root), ["cpp"], lambda _: None)

    def test_a_good_card(self):
        self.assertEqual(self.found(), [])

    def test_a_card_that_shows_something_else(self):
        self.write("x/a.md", self.card.replace("2 *", "3 *"))
        self.assertIn("does not show snippets/a/after", self.found()[0])
        card = corpus.load(self.root)[0]
        corpus.rewrite(card)
        self.assertEqual((self.root / "x/a.md").read_text(), self.card)

    def test_forms_with_other_arguments(self):
        self.write("snippets/a/before.cpp", self.bench.replace("n = 64", "n = 32") + self.body)
        self.assertIn("differ in language or in the bench comment", self.found()[0])

    def test_a_measurement_without_a_pair(self):
        (self.root / "snippets/a/before.cpp").unlink()
        self.write("x/a.md", self.card.replace("title: A", "title: A\nmeasured: 2.00x on B, 2026-11-30"))
        self.assertIn("has no pair", self.found()[0])

    def test_a_snippet_that_no_card_has(self):
        self.write("snippets/b/after.cpp", self.body)
        with self.assertRaisesRegex(corpus.BadCard, "without a card: b"):
            corpus.load(self.root)

    def test_a_malformed_bench_comment(self):
        for bad in ("// bench: f(x float[64]", "// bench: f(x floaty[64])", "// bench: f(x float[n])"):
            self.write("snippets/a/after.cpp", bad + "\n" + self.body)
            self.assertIn("malformed", self.found()[0])

    @unittest.skipUnless(build.compiler("cpp"), "g++ is missing")
    def test_forms_that_differ_and_code_that_does_not_compile(self):
        self.write("snippets/a/before.cpp", self.bench + self.body.replace("2 *", "3 *"))
        self.assertIn("the two forms differ by", self.found()[0])
        self.write("snippets/a/before.cpp", self.bench + self.body.replace("2 *", "two *"))
        self.assertIn("before.cpp:3", self.found()[0])

    @unittest.skipUnless(build.compiler("cpp"), "g++ is missing")
    def test_a_measurement_replaces_that_of_the_same_device(self):
        (card,) = corpus.load(self.root)
        (_, result), *_ = measure.results_of([card], 0.01, "cpu")
        self.assertEqual([len(result[x]) for x in ("before", "after")], [2, 2])
        steady = result | {"before": [3, 3], "after": [1, 1.05]}
        self.assertIsNone(measure.fault_of(card, steady))
        self.assertIn("unsteady: 3.00x", measure.fault_of(card, steady | {"before": [3, 4]}))
        self.assertIn("differ by 0.5", measure.fault_of(card, steady | {"error": 0.5}))
        measure.record(card, 1.5, "B", "2026-11-30")
        measure.record(card, 2.25, "C", "2026-11-30")
        measure.record(card, 1.75, "B", "2026-12-01")
        (card,) = corpus.load(self.root)
        self.assertEqual(card.header["measured"], "2.25x on C, 2026-11-30; 1.75x on B, 2026-12-01")
        self.assertEqual(self.found(), [])


if __name__ == "__main__":
    unittest.main()
