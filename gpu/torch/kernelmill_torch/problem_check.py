"""`task check` of a problem: whether something other than an answer would pass, and what a user should know."""

from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from kernelmill_torch import compare
from kernelmill_torch.admission import SMALL_OUTPUT
from kernelmill_torch.bench import Bench
from kernelmill_torch.contents import OWN
from kernelmill_torch.faults import lacks_memory
from kernelmill_torch.problem import BadProblem, Truth, are_finite

BLIND_DRAWS = 32
BLIND_FAILURES = 4  # of them, and an answer is no shortcut
SEEDS = tuple(range(11, 12 + BLIND_DRAWS))
CONSTANT_DRAWS = 8
CONSTANT_SHARE = 0.05  # of an output's elements, which is worth a note
IMPRECISE = 0.02  # relative; a reference that is off by more decides nothing


def check(bench: Bench) -> dict[str, Any]:
    """Tries answers that know nothing of the inputs against the honest rules. Returns problems and notes."""
    notes = bench.notes + bench.admitted.notes()
    problems = unfit(bench)
    if not problems:
        notes += remarks(bench)
    layout = bench.layout
    notes.append(
        f"inputs {', '.join(x.text() for x in layout.inputs if x)}; outputs "
        f"{', '.join(x.text() for x in layout.outputs)}; needs {bench.needed / 2**30:.2f} GiB"
    )
    return {"problems": problems, "notes": notes}


def unfit(bench: Bench, float32: str = "fp32") -> list[str]:
    """Why no candidate can be judged by the problem; nothing where one can. Raises what lacks_memory(): that is not the problem's fault."""
    problem = bench.problem
    try:
        problem.build(SEEDS[0], bench.place)
        inputs = problem.draw(SEEDS[1])
        first = bench.truth(problem.draw(SEEDS[0]), SEEDS[0])
        truth = bench.truth(inputs, SEEDS[1])
        problems = degenerate_answers(bench, first, float32)
        if not are_finite(truth.want):
            problems.insert(0, "the right answer is not finite")
        if unchanged_passes_always(bench, inputs, truth, float32):
            problems.append("an unchanged input passes")
    except (BadProblem, MemoryError, RuntimeError, ValueError) as e:
        if lacks_memory(e):
            raise
        return [f"the model fails: {str(e)[:300]}"]
    for i, level in enumerate(truth.level):
        if level > IMPRECISE:
            problems.append(f"output {i} of the model itself is off by {level:.1%}: it decides nothing")
    return problems


def unfit_for_suite(bench: Bench, rules: list[compare.Rule]) -> list[str]:
    """As unfit(), by the rules of a suite, which has no other contents than the problem's own."""
    problem = bench.problem
    problem.build(SEEDS[0], bench.place)
    other = problem.plain_truth(problem.draw(SEEDS[0]), SEEDS[0])
    return blind_answers(bench, answers_to(other), lambda *_: rules, SEEDS[1:])[:1]


def remarks(bench: Bench) -> list[str]:
    """What the author of a problem should know of it. REQUIRES: it is not unfit()."""
    problem, notes = bench.problem, []
    inputs = problem.draw(SEEDS[1])
    truth = bench.truth(inputs, SEEDS[1])
    rules = compare.honest_rules(truth, "fp32", False)
    known = answers_to(bench.truth(problem.draw(SEEDS[0]), SEEDS[0]))
    own = blind_answers(bench, known, lambda *_: rules, SEEDS[1:])
    notes += [x + ", on the problem's own inputs; hidden ones tell" for x in own[:1]]
    if unchanged_passes(inputs, truth, rules):
        notes.append("an unchanged input passes on the problem's own inputs; hidden ones tell it apart")
    if not problem.exact and not bench.is_random:
        notes.append("the model does not run in double precision here: its own precision is the truth")
    if bench.is_random:
        notes.append(
            "the model draws random numbers itself: each row of calls has a seed, which candidates must draw from as it does"
        )
    weigh_constants(problem, truth, notes)
    weigh_parameters(problem, inputs, truth, notes)
    return notes


def blind_answers(
    bench: Bench,
    known: dict[str, list[Optional[torch.Tensor]]],
    rules_of: Callable[[str, list[torch.Tensor]], list[compare.Rule]],
    seeds: Sequence[int],
    others: Sequence[str] = (),
) -> list[str]:
    """Which of some outputs (None: zeros) would pass for the inputs of nearly all seeds, of which every second has one of
    the other kinds of contents. One that passes for fewer is no shortcut: a candidate is asked ten times and more."""
    left = {} if bench.is_random else dict(known)
    failures = dict.fromkeys(left, 0)
    for i, seed in enumerate(seeds):
        if not left:
            break
        kind = others[i // 2 % len(others)] if others and i % 2 else OWN
        want = None  # of the draw before: large ones are not held twice
        want = bench.problem.run(bench.problem.draw(seed, kind))
        rules = rules_of(kind, want)
        for name, got in list(left.items()):
            failures[name] += not all(compare.would_pass(x, y, rule) for x, y, rule in zip(got, want, rules))
            if failures[name] >= BLIND_FAILURES:
                del left[name]
    return list(left)


def passes(got: list[torch.Tensor], truth: Truth, rules: list[compare.Rule]) -> bool:
    """Whether outputs would be accepted."""
    return all(
        a.shape == b.shape and compare.judge(a.to(b.dtype), b, rule)[0] == 0
        for a, b, rule in zip(got, truth.want, rules)
    )


def unchanged_passes(inputs: list[Any], truth: Truth, rules: list[compare.Rule]) -> bool:
    """Whether the first input would be accepted as the output. One of another type would not: a cast is work."""
    same = [x for x in inputs if isinstance(x, torch.Tensor)]
    wanted = truth.types[0] if truth.types else torch.float32
    return (
        bool(same)
        and len(truth.want) == 1
        and same[0].dtype == wanted
        and same[0].shape == truth.want[0].shape
        and passes(same[:1], truth, rules)
    )


def unchanged_passes_always(bench: Bench, inputs: list[Any], truth: Truth, float32: str) -> bool:
    """Whether the first input would be accepted as the output, on contents of every kind."""
    rules = compare.honest_rules(truth, float32, False)

    def passes(kind: str) -> bool:
        drawn = bench.problem.draw(SEEDS[0], kind)
        return unchanged_passes(drawn, bench.truth(drawn, SEEDS[0], kind), rules)

    return unchanged_passes(inputs, truth, rules) and all(passes(x) for x in bench.admitted.others)


def answers_to(other: Truth) -> dict[str, list[Optional[torch.Tensor]]]:
    """Outputs that take no work, by what is said of a problem for which they pass. `other`: what is right for other inputs."""
    known: dict[str, list[Optional[torch.Tensor]]] = {
        "the answer to other inputs passes: the output does not depend on the inputs": list(other.want),
        "an output of zeros passes": [None for _ in other.want],
    }
    if any(x.numel() > 1 for x in other.want):
        known["the mean of the output in every place passes"] = [
            torch.full_like(x, float(x.double().mean())) if x.is_floating_point() else torch.zeros_like(x)
            for x in other.want
        ]
    return known


def degenerate_answers(bench: Bench, other: Truth, float32: str) -> list[str]:
    """The first of those that would pass as a candidate's, also on contents of other kinds."""
    found = blind_answers(
        bench,
        answers_to(other),
        lambda kind, want: compare.at_own_scale(
            compare.honest_rules(bench.losses(kind), float32, True), want, SMALL_OUTPUT
        ),
        SEEDS[1:],
        bench.admitted.others,
    )
    return found[:1]


def weigh_constants(problem, truth: Truth, notes: list[str]) -> None:
    """Elements of outputs that are the same whatever the inputs: they can be written before anybody looks at a clock."""
    if problem.is_random or not any(isinstance(x, torch.Tensor) for x in problem.draw(SEEDS[0])):
        return
    same = [torch.ones_like(x, dtype=torch.bool) for x in truth.want]
    first = problem.run(problem.draw(SEEDS[0]))
    for seed in SEEDS[1:CONSTANT_DRAWS]:
        for x, y, z in zip(same, first, problem.run(problem.draw(seed))):
            x &= y == z
    for i, x in enumerate(same):
        share = float(x.float().mean()) if x.numel() else 0.0
        if share > CONSTANT_SHARE and x.numel() > 1:
            notes.append(
                f"{share:.0%} of output {i} is the same for all inputs: a candidate that keeps its buffers need not write that again, and is "
                "faster by that"
            )


def weigh_parameters(problem, inputs: list[Any], truth: Truth, notes: list[str]) -> None:
    """Parameters that the output does not depend on."""
    model = problem.models[problem.dtype]
    rules = compare.honest_rules(truth, "fp32", True)
    unused = []
    for name, x in model.named_parameters():
        kept = x.data.clone()
        x.data.mul_(1.5).add_(0.25)
        try:
            if passes(problem.run(inputs), truth, rules):
                unused.append(name)
        finally:
            x.data.copy_(kept)
        if len(unused) > 8:
            break
    if unused:
        notes.append("the output does not depend on " + ", ".join(unused))
