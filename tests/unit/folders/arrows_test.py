#!/usr/bin/python3
"""Folders include only those below them.

ARROWS is the house: for each folder with C++ in it, the folders whose headers it may include besides
its own; every folder may include messages/. A folder that is not named here, an include against the arrows, an
arrow without a use and a circle of arrows are refused; so is a library's header outside of the
folders that keep that library to themselves.
"""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
FLOORS = ("messages", "storage", "retrieval", "gpu", "actors", "launch")
# Folders that are one room: the larger one's code comes in two folders.
PARTS = {"gpu/referee/device": "gpu/referee"}
# Headers of PyTorch's that are ours, for candidates alone.
NOT_OURS = "gpu/torch/kernelmill_torch/"

ARROWS = {
    "messages/base": "",
    "messages": "messages/base",
    "messages/log": "messages messages/base",
    "storage": "",
    "storage/bundle": "storage",
    "storage/export": "storage storage/export/licences storage/export/rows storage/lineage",
    "storage/export/licences": "storage/lineage",
    "storage/export/rows": "storage storage/export/licences storage/journal",
    "storage/fsck": "storage storage/journal storage/lineage",
    "storage/journal": "storage storage/lineage",
    "storage/lineage": "storage",
    "storage/restore": "storage storage/journal storage/lineage",
    "retrieval/code": "",
    "retrieval/corpora": "retrieval/code retrieval/guard",
    "retrieval/guard": "retrieval/code",
    "retrieval/search": "retrieval/code retrieval/corpora retrieval/guard",
    # gpu/
    "gpu/cuda": "",
    "gpu/timing": "",
    "gpu/process": "",
    "gpu/task": "",
    "gpu/profiler": "gpu/task",
    "gpu/inspect": "gpu/profiler gpu/sandbox gpu/toolchain",
    "gpu/sandbox": "gpu/process",
    "gpu/python": "gpu/process gpu/sandbox",
    "gpu/candidate": "gpu/cuda",
    "gpu/toolchain": "gpu/process gpu/python gpu/sandbox gpu/task",
    "gpu/referee": "gpu/candidate gpu/cuda gpu/process gpu/sandbox gpu/task gpu/timing gpu/toolchain",
    "gpu/examine": "gpu/candidate gpu/process gpu/profiler gpu/python gpu/referee gpu/sandbox gpu/task gpu/toolchain",
    "gpu/program": "gpu/referee gpu/sandbox gpu/task gpu/timing gpu/toolchain",
    "gpu/program/native": "",
    "gpu/torch": "gpu/python gpu/referee gpu/sandbox gpu/task gpu/timing",
    "gpu/torch/native": "gpu/candidate gpu/cuda gpu/process gpu/sandbox",
    "gpu/programs": (
        "gpu/candidate gpu/cuda gpu/examine gpu/process gpu/program gpu/referee gpu/sandbox gpu/task gpu/torch"
    ),
    # actors/
    "actors": "",
    "actors/cluster": "actors gpu/task storage",
    "actors/compiler": "actors gpu/toolchain",
    "actors/episode": (
        "actors actors/episode/patch actors/governance actors/policy_client/protocol gpu/profiler gpu/task"
    ),
    "actors/episode/patch": "",
    "actors/episode/refine": "actors/episode actors/episode/patch",
    "actors/episode/tools": ("actors/episode actors/episode/patch actors/governance actors/policy_client/protocol"),
    "actors/governance": "actors",
    "actors/gpu_runner": "actors gpu/referee",
    "actors/handoff": "actors storage/lineage",
    "actors/head": "actors actors/cluster actors/policy_client storage",
    "actors/lineage": "actors storage storage/lineage",
    "actors/monitor": "actors",
    "actors/policy_client": "actors actors/policy_client/http actors/policy_client/protocol",
    "actors/policy_client/http": "",
    "actors/policy_client/protocol": "",
    "actors/policy_pool": "actors actors/policy_client actors/policy_client/protocol",
    "actors/profiler": "actors gpu/profiler",
    "actors/retriever": "actors retrieval/search",
    "actors/run": "actors actors/episode actors/governance",
    "actors/search": "actors actors/episode",
    # launch/
    "launch": "launch/cli launch/commands",
    "launch/analysis/bundle": (
        "actors/episode/patch storage storage/bundle storage/export/licences storage/journal storage/lineage"
    ),
    "launch/analysis/library": "launch/analysis/report storage storage/lineage",
    "launch/analysis/report": "launch/cli storage storage/lineage",
    "launch/analysis/searching": "actors/search launch/cli storage storage/lineage",
    "launch/analysis/simulate": "storage/lineage",
    "launch/analysis/study": (
        "actors/episode/patch launch/analysis/report launch/analysis/watch storage storage/export storage/lineage"
    ),
    "launch/analysis/watch": "launch/analysis/report launch/cli storage storage/lineage",
    "launch/cli": "launch/config",
    "launch/cluster": (
        "actors actors/cluster actors/head actors/monitor actors/policy_pool launch/analysis/watch "
        "launch/config launch/machine launch/node storage storage/lineage"
    ),
    "launch/cmake": "",
    "launch/commands": (
        "actors/governance gpu/task launch/analysis/report launch/analysis/watch launch/cli launch/cluster "
        "launch/config launch/judging launch/node launch/server/page storage storage/lineage"
    ),
    "launch/commands/cluster": (
        "launch/analysis/simulate launch/cli launch/cluster launch/commands launch/config launch/node"
    ),
    "launch/commands/judge": (
        "actors/governance gpu/examine gpu/inspect gpu/process gpu/profiler gpu/referee gpu/sandbox gpu/task "
        "gpu/toolchain launch/analysis/bundle launch/analysis/library launch/analysis/searching "
        "launch/analysis/watch launch/cli launch/cluster launch/commands launch/commands/remote launch/config "
        "launch/import launch/import/sol launch/judging launch/judging/benching launch/judging/inspecting "
        "launch/machine launch/node storage storage/lineage"
    ),
    "launch/commands/program": (
        "actors/episode/tools gpu/inspect gpu/process gpu/sandbox gpu/task launch/cli launch/commands launch/config "
        "launch/machine launch/node launch/server/api storage storage/export storage/lineage"
    ),
    "launch/commands/remote": (
        "gpu/task launch/cli launch/cluster launch/commands launch/config launch/import launch/judging launch/node "
        "launch/remote"
    ),
    "launch/commands/run": (
        "actors/cluster actors/handoff actors/policy_client launch/analysis/searching launch/analysis/watch "
        "launch/cli launch/cluster launch/commands launch/commands/judge launch/commands/remote "
        "launch/commands/store launch/commands/view launch/config launch/judging launch/learning/training "
        "launch/machine launch/node launch/server/api launch/server/http "
        "launch/server/rollouts launch/server/scripted storage storage/lineage storage/restore"
    ),
    "launch/commands/store": (
        "actors/governance gpu/task launch/analysis/bundle launch/analysis/library launch/analysis/report "
        "launch/analysis/watch launch/cli launch/cluster launch/commands launch/config launch/import launch/judging "
        "launch/kernel_forms launch/node "
        "retrieval/code retrieval/corpora retrieval/guard retrieval/search storage storage/bundle "
        "storage/export storage/export/licences storage/fsck storage/lineage storage/restore"
    ),
    "launch/commands/view": (
        "actors/episode/patch launch/analysis/report launch/analysis/searching launch/analysis/study "
        "launch/analysis/watch launch/cli launch/cluster launch/commands launch/judging storage storage/lineage"
    ),
    "launch/config": "",
    "launch/import": (
        "gpu/python gpu/task launch/import/reading launch/import/sol storage storage/bundle storage/journal "
        "storage/lineage"
    ),
    "launch/import/reading": "",
    "launch/import/sol": "launch/import/reading",
    "launch/judging": (
        "actors/episode actors/episode/tools actors/governance gpu/profiler gpu/referee gpu/task "
        "gpu/toolchain launch/analysis/library launch/cli launch/config launch/machine launch/node storage "
        "storage/lineage"
    ),
    "launch/judging/benching": "gpu/task gpu/timing launch/cli",
    "launch/judging/inspecting": (
        "gpu/inspect gpu/profiler gpu/sandbox gpu/task gpu/toolchain launch/cli launch/judging"
    ),
    "launch/kernel_forms": "gpu/task launch/analysis/library",
    "launch/learning/training": (
        "actors/episode actors/handoff actors/policy_client/http gpu/process gpu/task launch/analysis/report "
        "launch/analysis/study launch/cli launch/config launch/machine launch/node storage storage/journal"
    ),
    "launch/machine": (
        "gpu/cuda gpu/inspect gpu/process gpu/python gpu/referee gpu/sandbox gpu/task gpu/toolchain launch/config"
    ),
    "launch/node": (
        "actors actors/cluster actors/compiler actors/episode actors/episode/tools actors/governance "
        "actors/gpu_runner actors/lineage actors/monitor actors/policy_client actors/policy_client/http "
        "actors/profiler actors/retriever actors/run actors/search gpu/cuda gpu/sandbox gpu/task gpu/toolchain "
        "launch/analysis/library launch/config launch/machine launch/server/scripted launch/server/trackers "
        "retrieval/corpora retrieval/search storage storage/export storage/export/licences "
        "storage/journal storage/lineage"
    ),
    "launch/remote": "gpu/process launch/config storage",
    "launch/server/api": (
        "actors actors/episode actors/governance actors/handoff actors/policy_client "
        "actors/policy_client/http actors/policy_client/protocol gpu/task launch/analysis/library launch/cli "
        "launch/judging launch/server/http launch/server/rollouts storage/export"
    ),
    "launch/server/http": "actors actors/policy_client/http launch/config",
    "launch/server/page": (
        "launch/analysis/library launch/analysis/report launch/analysis/searching launch/analysis/study "
        "launch/analysis/watch launch/config launch/server/http storage storage/lineage"
    ),
    "launch/server/rollouts": (
        "actors/handoff actors/head actors/policy_client actors/policy_client/http launch/cluster "
        "launch/config launch/machine launch/node storage storage/export storage/export/licences "
        "storage/export/rows storage/lineage"
    ),
    "launch/server/scripted": "actors/policy_client/http actors/policy_client/protocol launch/server/http",
    "launch/server/trackers": "actors/policy_client/http launch/config storage storage/lineage",
    "launch/tools/cards": "",
}

# Libraries that folders keep to themselves.
KEPT = {
    r"lmdb\.h$": "storage",
    r"curl/": "actors/policy_client",
    r"faiss/": "retrieval",
    r"sqlite3\.h$": "gpu/profiler",
    r"(cuda|cuda_runtime|nvrtc|nvml|cupti)\.h$|hip/|rocm": "gpu",
    r"caf/(io|openssl)/": "launch/cluster",
    r"kj/compat/http\.h$": "launch/server/http launch/server/scripted",
    r"caf/": "messages actors launch",
    r"nlohmann/json\.hpp$": "messages/base",  # json_value.hpp: instantiated once
}


def room_of(folder):
    return PARTS.get(folder, folder)


def read_includes():
    """(file, included file, whether in quotes) of all of the product's C++."""
    for floor in FLOORS:
        for path in sorted((SOURCE / floor).rglob("*")):
            name = path.relative_to(SOURCE).as_posix()
            if path.suffix not in (".cpp", ".hpp", ".cu") or name.startswith(NOT_OURS):
                continue
            for ours, theirs in INCLUDE.findall(path.read_text()):
                yield name, ours or theirs, bool(ours)


def is_below(folder, floor):
    return folder == floor or folder.startswith(floor + "/")


def wrong_includes(includes, arrows, kept):
    """Sentences, one for each include that goes against the arrows; and the arrows in use."""
    wrong, used = [], set()
    for file, target, ours in includes:
        room = room_of(os.path.dirname(file))
        if room not in arrows:
            wrong.append(f"{file}: its folder is not among ARROWS; name what it may include there")
            continue
        if not ours:
            for pattern, places in kept.items():
                if re.match(pattern, target):
                    if not any(is_below(room, place) for place in places.split()):
                        wrong.append(f"{file}: <{target}> is included in {places} alone")
                    break
            continue
        other = room_of(os.path.dirname(target))
        if other == room:
            continue
        free = is_below(other, "messages") and not is_below(room, "messages")
        if not free and other not in arrows[room].split():
            wrong.append(f'{file}: "{target}": {room} must not include {other}')
        used.add((room, other))
    return wrong, used


def costly(includes, header):
    """The product's headers that include `header`; sources may."""
    return sorted(file for file, target, _ in includes if target == header and file.endswith(".hpp"))


def circle(arrows):
    """A circle of arrows as a list of folders, or None."""
    done, path = set(), []

    def walk(room):
        if room in path:
            return path[path.index(room) :] + [room]
        if room in done:
            return None
        path.append(room)
        for other in arrows.get(room, "").split():
            if found := walk(other):
                return found
        path.pop()
        done.add(room)
        return None

    for room in arrows:
        if found := walk(room):
            return found
    return None


class Tree(unittest.TestCase):
    def test_includes_follow_the_arrows_and_every_arrow_is_used(self):
        includes = list(read_includes())
        self.assertGreater(len(includes), 1000, "the walk finds no includes")
        wrong, used = wrong_includes(includes, ARROWS, KEPT)
        self.assertEqual(wrong, [], "\n".join(wrong))
        named = {(room, x) for room, others in ARROWS.items() for x in others.split()}
        self.assertEqual(sorted(named - used), [], "arrows that no include uses: remove them")

    def test_the_arrows_have_no_circle_and_go_down_the_floors(self):
        self.assertIsNone(circle(ARROWS))
        height = {"messages": 0, "storage": 1, "retrieval": 1, "gpu": 1, "actors": 2, "launch": 3}
        for room, others in ARROWS.items():
            for other in others.split():
                own, its = room.split("/")[0], other.split("/")[0]
                self.assertTrue(own == its or height[own] > height[its], f"{room} -> {other}")


class Headers(unittest.TestCase):
    def test_no_header_pulls_in_all_of_caf(self):
        # A file that includes the header pays for all of it, and needs a few of its headers.
        self.assertEqual(costly(read_includes(), "caf/all.hpp"), [], "name the headers of caf/ that are needed")


class Check(unittest.TestCase):
    """The check itself, on houses of a few lines."""

    def test_an_include_against_the_arrows_is_named(self):
        arrows = {"gpu/torch": "gpu/referee", "gpu/referee": ""}
        wrong, _ = wrong_includes(
            [("gpu/torch/a.cpp", "gpu/referee/b.hpp", True), ("gpu/referee/b.cpp", "gpu/torch/a.hpp", True)], arrows, {}
        )
        self.assertEqual(wrong, ['gpu/referee/b.cpp: "gpu/torch/a.hpp": gpu/referee must not include gpu/torch'])

    def test_a_folder_without_a_place_is_named(self):
        wrong, _ = wrong_includes([("gpu/new/a.cpp", "messages/error.hpp", True)], {}, {})
        self.assertEqual(len(wrong), 1)
        self.assertIn("gpu/new/a.cpp", wrong[0])

    def test_a_kept_library_is_refused_elsewhere(self):
        arrows = {"storage": "", "gpu/task": ""}
        wrong, _ = wrong_includes(
            [("storage/a.cpp", "lmdb.h", False), ("gpu/task/a.cpp", "lmdb.h", False)], arrows, KEPT
        )
        self.assertEqual(wrong, ["gpu/task/a.cpp: <lmdb.h> is included in storage alone"])

    def test_a_header_that_includes_a_costly_one_is_named(self):
        includes = [("actors/a.hpp", "caf/all.hpp", False), ("actors/a.cpp", "caf/all.hpp", False)]
        self.assertEqual(costly(includes, "caf/all.hpp"), ["actors/a.hpp"])

    def test_a_circle_is_found(self):
        self.assertEqual(circle({"a": "b", "b": "c", "c": "a"}), ["a", "b", "c", "a"])


if __name__ == "__main__":
    unittest.main()
