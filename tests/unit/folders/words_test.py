#!/usr/bin/python3
"""Texts name the actor and use the field's terms: no file of ours has a word of WORDS.

Not read: gpu/, history, changelogs, results, seeds of fuzzing, what a policy or another project wrote, and texts whose
digests runs record (tasks, cards, licences).
"""

import re
import unittest

import tree

NAME_IT = 'name the actor: "the candidate", "the referee", "the user", "no process"'
# (pattern, the better word), of lines and of paths. Matched as it is written here.
WORDS = [
    (r"(?<![A-Za-z])[Ww]ho(?:s)?ever(?![A-Za-z])", NAME_IT),
    (r"(?<![A-Za-z])[Nn]obod(?:y|ys)(?![A-Za-z])", NAME_IT + ", or say it in the passive"),
    (r"(?<![A-Za-z])[Ss]omebod(?:y|ys)(?![A-Za-z])", NAME_IT),
    (r"(?<![A-Za-z])Whom?(?![A-Za-z])(?![^.!?]*\?)", NAME_IT + "; only a question starts with Who"),
    (r"\brun_turns\b", "round_robin_queue"),
    (r"\bhead_sight\b", "head_page_view"),
    (r"\btelling_keys\b", "notification_keys"),
    (r"\bevaluation_desk\b", "evaluation_service"),
    (r"\bevaluation_book\b", "evaluation_table"),
    (r"\bfar_run(?!s\b)", "remote_run"),
    (r"\blooking\.hpp\b", "view_options.hpp"),
    (r"\boffering\.hpp\b", "candidate_source.hpp"),
    (r"\bstations\.hpp\b", "progress_view.hpp"),
    (r"What keeps it\b", "Why it is waiting"),
    (r"turns that came so far\b", "turns that passed each stage"),
    (r"so no machine works\b", "no active machines"),
]
NOT_READ = re.compile(
    r"^(?:gpu/|docs/history/|tests/exploits/|tests/bench/results/|tests/bench/kernelbench_candidates/"
    r"|tests/fuzz/corpus/|CHANGELOG|changelog/|configs/(?:tasks|policies|knowledge|licences)/)"
    r"|^tests/unit/folders/words_test\.py$"
)
# (pattern of paths, pattern of lines, why the word may stay there)
ALLOWED = [
    (r"^tests/unit/sandbox/", r"nobody", "the user of this name"),
    (r"", r"\b(?:user|uid|gid|group) [`\"']?nobody\b", "the user of this name"),
    (r"", r"killed_by::nobody\b", "a value of gpu/toolchain"),
    (r"", r"\bnobody-reaches-kernelmill\b", "a resource's name in clusters that run"),
]


def wrong_words(name, text):
    """Sentences, one for each word that may not be there."""
    found = []
    for number, line in enumerate([name, *text.splitlines()]):
        for pattern, better in WORDS:
            for word in re.findall(pattern, line):
                if not any(re.search(where, name) and re.search(what, line) for where, what, _ in ALLOWED):
                    place = f"{name}:{number}" if number else f"the path {name}"
                    found.append(f"{place}: {word!r}; better: {better}")
    return found


class Words(unittest.TestCase):
    def test_no_text_has_one(self):
        found, read = [], 0
        for name in tree.files():
            if not NOT_READ.search(name) and (text := tree.text_of(name)) is not None:
                read += 1
                found += wrong_words(name, text)
        self.assertGreater(read, 1000)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_words_are_found(self):
        for line, word in (
            ("// Who waits for it pays.", "Who"),
            ("run(x); // Whom it tells", "Whom"),
            ("Whoever asks", "Whoever"),
            ("    def test_nobody_is_paid(self):", "nobody"),
            ("that is nobody's", "nobody"),
            ("for somebody", "somebody"),
            ("#include <looking.hpp>", "looking.hpp"),
            ("struct far_run {", "far_run"),
            ("el('b', {}, 'What keeps it')", "What keeps it"),
        ):
            self.assertEqual([x.split("'")[1] for x in wrong_words("a.md", "\n" + line)], [word], line)
        self.assertIn("a.md:2: ", wrong_words("a.md", "\nnobody")[0])
        self.assertIn("the path x/head_sight", wrong_words("x/head_sight.hpp", "")[0].replace(".hpp", ""))

    def test_others_are_not(self):
        for line in ("Who pays?", "the WHO", "Whole", "who()", "scratch() + '/far_runs'", "the user nobody", "Whose"):
            self.assertEqual(wrong_words("a.md", line), [], line)


if __name__ == "__main__":
    unittest.main()
