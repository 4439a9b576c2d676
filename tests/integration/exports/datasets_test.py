"""`datasets.load_dataset` reads the folder of each form, packed and plain."""

import unittest

from support import SOURCE, go_on_with_trainers_python, golden_rows, has, missing, the_run

FORMS = sorted(
    x.name.removeprefix("export-").removesuffix(".schema.json")
    for x in (SOURCE / "configs/schemas").glob("export-*.schema.json")
)


@unittest.skipUnless(has("datasets"), missing("datasets"))
class LoadDataset(unittest.TestCase):
    def load(self, folder):
        import datasets

        return datasets.load_dataset(str(folder), cache_dir=str(the_run().folder / "cache" / folder.name))

    def test_each_form_has_its_rows_and_fields(self):
        for form in FORMS:
            with self.subTest(form):
                rows = the_run().rows(form)
                loaded = self.load(the_run().export(form))
                self.assertEqual(set(loaded), {"train", "dev"})
                self.assertEqual(sum(x.num_rows for x in loaded.values()), len(rows))
                self.assertEqual(list(loaded["train"].features), list(golden_rows(form)[0]))

    def test_packed_rows_are_the_same(self):
        plain = self.load(the_run().export("sft"))["train"]
        packed = self.load(the_run().export("sft", "--zstd"))["train"]
        self.assertEqual(plain[0], packed[0])
        self.assertEqual(plain.num_rows, packed.num_rows)

    def test_no_task_is_in_both_splits(self):
        loaded = self.load(the_run().export("rl"))
        self.assertFalse(set(loaded["train"]["task"]) & set(loaded["dev"]["task"]))


if __name__ == "__main__":
    go_on_with_trainers_python()
    unittest.main()
