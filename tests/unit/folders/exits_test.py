#!/usr/bin/python3
"""What reads the groups of a store says whether they leave it.

A licence may forbid that a task, an example in a prompt or a model's answer is trained on or passed on. Whatever leaves
the store takes an exports::admitted_group, which only a licence_gate makes. This test holds the list of the files that
read groups of a store without one, and the gate of those that let something out.
"""

import json
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
READS = re.compile(r"\b(?:for_each_group|read_group|read_episode|scan_group|scan_turns)\s*\(")
ASKS = re.compile(r"\badmit\s*\(|\blicence_gate\b")

# Something of what they read leaves the store: for a trainer, for another user, or into prompts.
EXITS = {
    "launch/analysis/bundle/make_bundle.cpp": "bundles",
    "launch/commands/store/export_harbor_tasks.cpp": "export --form harbor-tasks",
    "launch/commands/store/export_sol.cpp": "export --form sol",
    "launch/commands/store/index_run_kernels.cpp": "index build --from run=RUN: examples of later prompts",
    "launch/commands/store/kernel_export.cpp": "kernel export: a kernel as files for users",
    "launch/server/rollouts/group_rows.cpp": "serve --runs: rows for trainers",
    "storage/export/dataset.cpp": "every form of export that has rows",
}

# They show a run to the owner of its store, judge it, or keep it in order. Nothing of it is written as data.
STAY = {
    "launch/commands/store/export_follow.cpp": "when a group has ended; dataset.cpp writes its rows",
    "launch/commands/judge/replay.cpp": "builds and evaluates again",
    "launch/commands/store/rescore.cpp": "new verdicts beside the old ones",
    "launch/commands/run_view.cpp": "show",
    "launch/commands/episode_candidates.cpp": "the candidates of one episode, for the commands of candidates",
    "launch/commands/view/show.cpp": "show",
    "launch/server/page/transcript.cpp": "the page",
    "launch/analysis/report/run_samples.cpp": (
        "figures, no texts; export --form kernelbench asks check_all of its tasks"
    ),
    "launch/server/rollouts/local_rollouts.cpp": "whether a group has ended; group_rows.cpp makes its rows",
    "launch/analysis/simulate/measured.cpp": "durations",
    "launch/analysis/searching/search_story.cpp": "report: figures of a search, no texts",
    "launch/commands/judge/winner.cpp": "the best kernel of a search is judged again and laid into its own run",
    "launch/analysis/study/comparison.cpp": "compare",
    "launch/analysis/study/turn_query.cpp": "query",
    "launch/server/trackers/otlp.cpp": "spans for the run's own collector; texts only with otlp.content",
    "launch/analysis/watch/episode_views.cpp": "show, ps",
    "launch/analysis/watch/explain_view.cpp": "explain",
    "launch/analysis/watch/live.cpp": "ps, top",
    "launch/analysis/watch/records_view.cpp": "show --json",
}
FLOORS = ("actors", "gpu", "launch", "retrieval", "storage")
# The store itself.
OF_THE_STORE = re.compile(
    r"^storage/(?:(?:lineage|journal)/)?[a-z_]+\.(?:cpp|hpp)$|^storage/fsck/|^storage/bundle/|^storage/restore/"
)


def readers():
    for floor in FLOORS:
        for path in sorted((SOURCE / floor).rglob("*.cpp")):
            name = path.relative_to(SOURCE).as_posix()
            text = re.sub(r"//.*", "", path.read_text())
            if READS.search(text) and not OF_THE_STORE.match(name):
                yield name, text


class Exits(unittest.TestCase):
    def test_a_reader_of_groups_says_whether_they_leave(self):
        found = dict(readers())
        unnamed = sorted(set(found) - set(EXITS) - set(STAY))
        self.assertEqual(
            unnamed,
            [],
            "they read groups of a store: name each among EXITS, and let a licence_gate admit what "
            "leaves, or among STAY with the reason",
        )
        self.assertEqual(sorted((set(EXITS) | set(STAY)) - set(found)), [], "they read no groups any more")

    def test_whatever_leaves_asks_the_gate(self):
        for name, text in readers():
            if name in EXITS:
                self.assertRegex(text, ASKS, f"{name} ({EXITS[name]}) lets something out beside the gate")

    def test_the_page_shows_and_hands_nothing_out_as_data(self):
        routes = json.loads((SOURCE / "docs/reference/page-openapi.json").read_text())["paths"]
        self.assertGreater(len(routes), 20)
        self.assertEqual([x for x in routes if re.search(r"export|bundle|dataset|rollout|batch|download", x)], [])

    def test_only_the_gate_admits(self):
        makers = []
        for floor in FLOORS:
            for path in sorted((SOURCE / floor).rglob("*.[ch]pp")):
                if (
                    re.search(r"\badmitted_group\s*\{|friend class", path.read_text())
                    and "admitted_group" in path.read_text()
                ):
                    makers.append(path.relative_to(SOURCE).as_posix())
        self.assertEqual(
            makers, ["storage/export/licences/licence_gate.cpp", "storage/export/licences/licence_gate.hpp"]
        )


if __name__ == "__main__":
    unittest.main()
