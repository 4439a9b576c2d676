"""The promises: words, goal, and what measures each. docs/explanation/promises.md explains them."""

import importlib.util
import re
from dataclasses import dataclass, field
from typing import Callable

from promises.measure import Bench, NotHere, Outcome

# What the tests of a promise need built, beside the program.
TARGETS = {
    "P1": ["fault_tests"],
    "P2": ["fault_tests"],
    "P3": ["fault_tests"],
    "P4": ["sim_tests"],
    "P7": ["power_loss_test"],
    "P8": ["storage_tests", "bad_disk"],
    "P9": ["sim_tests", "cluster_simulation_test"],
    "P10": ["sim_tests", "cluster_simulation_test"],
    "P11": ["exploit_suite_test"],
    "P13": ["sandbox_tests"],
}


BOMB = "an_intruder.with_a_fork_bomb_dies_whole"


@dataclass
class Found:
    figure: str
    held: bool
    commands: list = field(default_factory=list)
    logs: list = field(default_factory=list)


@dataclass
class Row:
    id: str
    words: str
    goal: str
    measure: Callable[[Bench], Found]
    gpu: str = ""  # the part of gpu_check.sh that measures the rest


def found(figure: str, held: bool, *outcomes: Outcome) -> Found:
    return Found(
        figure, held and all(x.held for x in outcomes), [x.command for x in outcomes], [x.log for x in outcomes]
    )


def count(outcome: Outcome, name: str) -> int:
    """A figure; a test that ended before it could record one has not held."""
    value = outcome.figures.get(name)
    return value if isinstance(value, int) else 0


def n(value) -> str:
    return f"{value:,}"


# -- nothing lost, nothing doubled ----------------------------------------------------------------


def killed_nodes(bench: Bench) -> Outcome:
    kills = bench.of_size(6, 50, 1000)
    return bench.gtest("fault_tests", "KillNode.*", limit=600 + 60 * kills, KERNELMILL_KILLS=kills)


def killed_helpers(bench: Bench) -> Outcome:
    kills = bench.of_size(12, 120, 10_000)
    return bench.script("tests/fault/helpers_killed_test.py", limit=600 + 60 * kills, KERNELMILL_KILLS=kills)


def chaos(bench: Bench) -> Outcome:
    actions = bench.of_size(24, 300, 10_000)
    return bench.script(
        "tests/chaos/chaos.py",
        limit=600 + 3 * actions,
        KERNELMILL_ACTIONS=actions,
        KERNELMILL_EVALUATED_ACTIONS=actions // 10,
    )


def kills_lose_nothing(bench: Bench) -> Found:
    kills = bench.of_size(200, 2000, 10_000)
    store = bench.gtest("fault_tests", "store_writer.*", limit=600 + kills, KERNELMILL_KILLS=kills)
    node, helpers, storm = killed_nodes(bench), killed_helpers(bench), chaos(bench)
    struck = [count(x, "kills") for x in (store, node, helpers, storm)]
    lost = count(store, "lost")
    return found(
        f"{n(lost)} lost of {n(count(store, 'acknowledged'))} acknowledged; {n(sum(struck))} kills: of the "
        f"store's writer {n(struck[0])}, of the node {n(struck[1])}, of what it started {n(struck[2])}, "
        f"in {n(count(storm, 'actions'))} kills, freezes and cuts {n(struck[3])}, "
        f"{n(count(storm, 'evaluated_actions'))} of them over evaluations",
        lost == 0 and all(struck),
        store,
        node,
        helpers,
        storm,
    )


def exactly_one_reward(bench: Bench) -> Found:
    turns = bench.of_size(5000, 50_000, 1_000_000)
    it = bench.gtest("fault_tests", "exactly_once.*", limit=600 + turns / 500, KERNELMILL_TURNS=turns)
    return found(
        f"{n(count(it, 'doubles'))} doubled, {n(count(it, 'missing'))} missing of {n(count(it, 'turns'))} "
        f"turns delivered {n(count(it, 'delivered'))} times",
        count(it, "turns") == turns,
        it,
    )


def resume_is_the_same(bench: Bench) -> Found:
    it = killed_nodes(bench)
    runs = count(it, "runs")
    return found(
        f"{n(runs if it.held else 0)} of {n(runs)} killed runs have the undisturbed run's lineage, byte for "
        f"byte; {n(count(it, 'kills'))} kills",
        runs > 0,
        it,
    )


def faults_are_no_rewards(bench: Bench) -> Found:
    it = killed_helpers(bench)
    sim = bench.gtest("sim_tests", "Lease.*")
    return found(
        f"{n(count(it, 'mislabelled'))} mislabelled of {n(count(it, 'turns'))} turns under "
        f"{n(count(it, 'kills'))} kills of helpers; {n(count(it, 'infrastructure'))} taken out as faults of "
        f"the machine",
        count(it, "mislabelled") == 0 and count(it, "kills") > 0,
        it,
        sim,
    )


# -- bytes of strangers ---------------------------------------------------------------------------


def bytes_crash_nothing(bench: Bench) -> Found:
    script = bench.root / "tests/fuzz/run.sh"
    if not script.exists():
        raise NotHere("tests/fuzz is not there")
    seconds = bench.of_size(5, 60, 86_400)
    it = bench.run("fuzz", [script, seconds], 3600 + 40 * seconds, {}, {})
    rows = re.findall(r"^(\w+) +(\d+) +\d+ +\d+ +\d+ +\d+ +(\d+) (\w+)", it.text, re.MULTILINE)
    broken = [x[0] for x in rows if x[3] != "well"]
    return found(
        f"{n(len(broken))} broken of {n(len(rows))} parsers, {n(sum(int(x[1]) for x in rows))} executions, at "
        f"most {max((int(x[2]) for x in rows), default=0)} MiB",
        bool(rows) and not broken,
        it,
    )


def strangers_cost_little(bench: Bench) -> Found:
    it = bench.script("tests/fault/strangers_test.py", KERNELMILL_STRANGERS=bench.of_size(200, 500, 1000))
    return found(
        f"{it.figures.get('kib_a_connection')} KiB a connection at most over {n(count(it, 'connections'))}, "
        f"{it.figures.get('mib_in_all')} MiB in all; `status` took {it.figures.get('status_s')} s beside them",
        "kib_a_connection" in it.figures,
        it,
    )


# -- disks ----------------------------------------------------------------------------------------


def power_loss(bench: Bench) -> Found:
    commits = bench.of_size(30, 100, 1000)
    it = bench.gtest("power_loss_test", limit=600 + 10 * commits, KERNELMILL_COMMITS=commits)
    return found(
        f"{n(count(it, 'corrupt'))} corrupt, {n(count(it, 'lost'))} turns lost, {n(count(it, 'doubled'))} doubled "
        f"in {n(count(it, 'images'))} disks after each of {n(count(it, 'calls'))} calls of "
        f"{n(count(it, 'commits'))} commits",
        count(it, "images") > 0,
        it,
    )


def bad_disks(bench: Bench) -> Found:
    it = bench.script("tests/fault/bad_disk_test.py")
    store = bench.gtest("storage_tests", "store_on*:store_beyond*:store.grows*")
    return found(
        f"{count(it, 'cases')} kinds of bad disks and {store.cases} of the store alone stopped as documented and "
        f"went on, {it.figures.get('lost')} turns lost",
        count(it, "cases") > 0,
        it,
        store,
    )


# -- simulation -----------------------------------------------------------------------------------


def simulated(bench: Bench) -> tuple:
    seeds = bench.of_size(1000, 1000, 10_000)
    it = bench.gtest("sim_tests", "Simulation.*", limit=600 + seeds, KERNELMILL_SIM_SEEDS=seeds)
    told = re.search(r"(\d+) seeds.*?(\d+) nodes killed.*?(\d+) resumes.*?([\d.]+) virtual hours", it.text)
    return it, told and [float(x) for x in told.groups()]


def simulated_cluster(bench: Bench) -> tuple:
    """A head, nodes, network, disks and policy servers; what its seeds and faults were."""
    seeds = bench.of_size(1000, 1000, 10_000)
    it = bench.gtest("cluster_simulation_test", limit=600 + seeds, KERNELMILL_SIM_SEEDS=seeds)
    told = re.search(r"(\d+) seeds, (\d+) faults, \d+ steps, \d+ virtual hours; at most (\d+) s", it.text)
    return it, [int(x) for x in told.groups()] if told else [0, 0, 0]


def simulation_is_fast(bench: Bench) -> Found:
    it, told = simulated(bench)
    if not told:
        return found("it said no figures", False, it)
    seeds, killed, resumes, hours = told
    cluster, (lives, faults, _) = simulated_cluster(bench)
    return found(
        f"{n(int(seeds))} seeds, {n(int(killed))} nodes killed, {n(int(resumes))} resumes, {n(int(hours))} "
        f"virtual hours in {it.seconds:.0f} s: {n(int(hours * 3600 / it.seconds))} times real time; a whole "
        f"cluster {n(lives)} seeds with {n(faults)} faults",
        hours * 3600 / it.seconds >= 100 and lives > 0,
        it,
        cluster,
    )


def everything_ends(bench: Bench) -> Found:
    it, told = simulated(bench)
    cluster, (lives, _, latest) = simulated_cluster(bench)
    ended = "all" if it.held and cluster.held else "not all"
    return found(
        f"{ended} episodes of {n(int(told[0])) if told else 0} seeds ended once the faults had, and of "
        f"{n(lives)} of a whole cluster, within {latest} s of virtual time",
        bool(told) and lives > 0,
        it,
        cluster,
    )


# -- candidates -----------------------------------------------------------------------------------


def hacks_do_not_pay(bench: Bench) -> Found:
    it = bench.gtest("exploit_suite_test", limit=3600)
    told = re.search(r"hacks rejected or unpaid (\d+)/(\d+), honest accepted (\d+)/(\d+)", it.text)
    if not told:
        return found("it said no figures", False, it)
    rejected, hacks, accepted, honest = map(int, told.groups())
    return found(
        f"{rejected} of {hacks} hacks rejected or not paid, {honest - accepted} of {honest} honest kernels "
        f"refused, on a CPU",
        rejected == hacks and accepted == honest,
        it,
    )


def timing_on_gpus(bench: Bench) -> Found:
    parts = ["same", "planted"] + (["torch_same"] if importlib.util.find_spec("torch") else [])
    copies = bench.of_size(50, 200, 1000)
    it = bench.gpu_check(parts, 1800 + 10 * copies, "--copies", copies)
    return found(
        f"{len(it.failed)} of {len(it.figures['promises'])} broken: {'; '.join(it.figures['promises'])}", True, it
    )


def sandbox_holds(bench: Bench) -> Found:
    it = bench.gtest("sandbox_tests", "an_intruder.*:the_init*:a_user*")
    skipped = f", {len(it.skipped)} skipped" if it.skipped else ""
    wanted = bench.of_size(3, 20, 1000)
    bombs = bench.gtest("sandbox_tests", BOMB, limit=600 + 5 * wanted, GTEST_REPEAT=wanted)
    died, lived = (
        len(re.findall(rf"^\[ +{word} +\] {BOMB} \(", bombs.text, re.MULTILINE)) for word in ("OK", "FAILED")
    )
    return found(
        f"{len(it.failed)} ways out in {it.cases + len(it.failed)} attacks{skipped}; {n(died + lived)} fork bombs, "
        f"{n(lived)} with survivors",
        died == wanted and not it.failed,
        it,
        bombs,
    )


def crashes_stay_alone(bench: Bench) -> Found:
    candidates = bench.of_size(15, 100, 500)
    it = bench.script(
        "tests/fault/crash_isolation_test.py", limit=600 + 30 * candidates, KERNELMILL_CANDIDATES=candidates
    )
    return found(
        f"{it.figures.get('mis_scored')} mis-scored: {n(count(it, 'good'))} good candidates between "
        f"{n(count(it, 'bad'))} that crash, hang or write where they must not, on a CPU",
        count(it, "good") == candidates,
        it,
    )


def secrets_stay_secret(bench: Bench) -> Found:
    it = bench.script("tests/fault/secrets_test.py")
    return found(
        f"{it.figures.get('hits')} hits in {n(count(it, 'files'))} files, {n(count(it, 'processes'))} "
        f"arguments and environments of children; {n(count(it, 'cores'))} core dumps",
        count(it, "files") > 0,
        it,
    )


PROMISES = [
    Row("P1", "no acknowledged turn lost on kill -9 of any process", "0 lost, 10,000 kills", kills_lose_nothing),
    Row("P2", "exactly one reward for each turn", "0 doubled, 0 missing, 1,000,000 turns", exactly_one_reward),
    Row("P3", "resume continues at the last committed turn", "1,000 of 1,000 runs byte-identical", resume_is_the_same),
    Row("P4", "a fault of the machine is no reward", "0 mislabelled of 10,000", faults_are_no_rewards, "faults"),
    Row("P5", "malformed bytes crash nothing", "0 crashes in 24 h a parser", bytes_crash_nothing),
    Row("P6", "bounded memory for each connection", "1 MiB before authentication", strangers_cost_little),
    Row("P7", "power loss", "0 corrupt over all prefixes of 1,000 commits", power_loss),
    Row("P8", "disk full, map full, read-only, EIO", "clean stop, resume works: 100 %", bad_disks),
    Row("P9", "the cluster is simulated", "10,000 seeds a night, 100 times real time", simulation_is_fast),
    Row("P10", "progress", "all episodes end once faults have", everything_ends),
    Row(
        "P11",
        "hacks do not pay",
        "98 % rejected, none paid; honest refused 0.5 %",
        hacks_do_not_pay,
        "exploits torch_exploits matrix false_alarms",
    ),
    Row(
        "P12",
        "the same kernel is not faster than itself",
        "1 % called faster; 95 % of planted 5 % found",
        timing_on_gpus,
        "same torch_same planted",
    ),
    Row("P13", "the sandbox holds", "0 ways out, no survivor, 1,000 fork bombs", sandbox_holds, "exploits"),
    Row("P14", "a candidate's crash stays its own", "0 of 500 good ones mis-scored", crashes_stay_alone, "faults"),
    Row("P15", "secrets stay secret", "0 hits", secrets_stay_secret),
]
