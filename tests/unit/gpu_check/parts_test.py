import contextlib
import datetime
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from gpu_check import common, corpora, matrix
from gpu_check.__main__ import RELEASE, USUALLY, read_options


class ProcessorTime(unittest.TestCase):
    def of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "stat"
            path.write_text(text)
            return common.processor_time(path)

    def test_it_is_what_the_kernel_says_of_all_processors(self):
        found = self.of("cpu  528264 837499 185627 5663342 2115 0 11242 112181 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        self.assertEqual(found, (528264 + 837499 + 185627 + 11242 + 112181, 112181))
        self.assertAlmostEqual(common.stolen_percent((0, 0), found), 6.7, places=1)

    def test_a_system_that_does_not_say_has_nothing_stolen(self):
        for text in "", "cpu 1 2 3 4 5 6 7\n", "cpu a b c d e f g h\n":
            self.assertEqual(self.of(text), (0, 0))
        self.assertEqual(common.processor_time(pathlib.Path("/nowhere")), (0, 0))
        self.assertEqual(common.stolen_percent((0, 0), (0, 0)), 0.0)


class Release(unittest.TestCase):
    def test_its_parts_share_ten_minutes_and_each_day_has_variants_of_its_own(self):
        chosen = read_options(["release"])
        self.assertEqual((chosen.parts, chosen.total, chosen.seeds), (list(RELEASE), 590, 10))
        self.assertLessEqual(set(RELEASE), set(USUALLY))
        with mock.patch("gpu_check.__main__.datetime") as calendar:
            calendar.date.today.return_value = datetime.date.today() + datetime.timedelta(1)
            tomorrow = read_options(["release"])
        self.assertEqual(tomorrow.order - chosen.order, 1)
        common.options = chosen
        ours = [x["source"] for x in matrix.variants(["look_at_contents"], ["torch-cuda"], lambda _row: 1)]
        common.options = tomorrow
        self.assertNotEqual(
            ours, [x["source"] for x in matrix.variants(["look_at_contents"], ["torch-cuda"], lambda _row: 1)]
        )
        rows = [{"file": f"{i}"} for i in range(50)] + [{"file": "memory_bomb"}]
        with mock.patch.object(common, "options", chosen):
            ours = corpora.in_order(rows)
        with mock.patch.object(common, "options", tomorrow):
            self.assertNotEqual(ours, corpora.in_order(rows))
        self.assertEqual((ours[-1], len(ours)), (rows[-1], 51))

    def test_what_there_was_no_time_for_is_not_held_against_it(self):
        rows, verdicts = [{"file": "judged"}, {"file": "late"}], {"judged": {}}
        for left, wanted in (100.0, rows), (0.0, rows[:1]):
            with mock.patch.object(common, "part", lambda left=left: mock.Mock(left=lambda: left)):
                self.assertEqual(corpora.tried(rows, verdicts), wanted)
        self.assertEqual(read_options(["truth"]).order, 0)


class Table(unittest.TestCase):
    def test_each_part_has_what_was_stolen_while_it_ran(self):
        counters = iter([(0, 0), (1000, 10), (2000, 260)])
        with (
            mock.patch.object(common, "processor_time", lambda: next(counters)),
            mock.patch.object(common, "honest", []),
        ):
            with mock.patch.object(common, "parts", [common.Part("clocks"), common.Part("truth")]):
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    common.promise(True, "as it should be")
                    self.assertTrue(common.end_table())
        lines = [x for x in said.getvalue().splitlines() if x.startswith(("clocks", "truth"))]
        self.assertEqual([x.split("%")[0].split()[-1] for x in lines], ["1.0", "25.0"])


if __name__ == "__main__":
    unittest.main()
