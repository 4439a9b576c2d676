"""Fifty generated variants of each class of shortcut that the problem's own inputs allow:
none is right on what an evaluation asks at least."""

import math
import random
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from contents_test import problem
    from kernelmill_torch import admission, compare
    from kernelmill_torch.contents import KINDS, OWN, in_turn
    from kernelmill_torch.judgement import LEAST_BEFORE_BATCHES

VARIANTS = 50
SETS = 6  # calls on a kind in a mixed batch, unless a call is long


def sampled_mean(dice):
    k, way = dice.choice((2, 4, 12, 16, 64)), dice.choice("rows columns tail block".split())
    at = dice.randrange(k)

    def answer(x):
        n = x.shape[0] // k
        part = {
            "rows": lambda: x[at::k],
            "columns": lambda: x[:, at::k],
            "tail": lambda: x[:-n],
            "block": lambda: torch.cat([x[: at * n], x[at * n + n :]]),
        }[way]()
        return (part - 0.5).square().mean()

    return answer


def part_of_cosines(dice):
    k, way = dice.choice((2, 3, 4, 8)), dice.choice(("head", "tail", "every"))

    def answer(a, b):
        n = a.shape[0] // k
        part = {"head": slice(None, -n), "tail": slice(n, None), "every": slice(dice.randrange(k), None, k)}[way]
        return torch.mean(1 - torch.nn.functional.cosine_similarity(a[part], b[part], dim=1))

    return answer


DECAYS = 0.7, 0.8, 0.9, 0.95, 0.98


def decaying(x, decay):
    t = torch.arange(x.shape[1], dtype=x.dtype)
    return (x * torch.exp((t - x.shape[1] + 1) * -math.log(decay))).sum(1)


def cut_decay(decay):
    """Leaves out what has 10^-4 to 10^-9.9 of the weight, however fast that is."""

    def of(dice):
        k = round(dice.uniform(4, 9.9) * math.log(10) / -math.log(decay))
        return lambda x: decaying(x[:, -k:], decay)

    return of


def look(dice):
    n, start = dice.choice((16, 64, 512, 4096)), dice.randrange(1000)

    def answer(x):
        some = x.view(-1)[start :: max(1, x.numel() // n)]
        return x.clone() if bool((some >= 0).all()) else torch.relu(x)

    return answer


def cut_product(dice):
    k = dice.choice((128, 200, 512, 1024, 1536))
    return lambda x: torch.cat([torch.cumprod(x[:, :k], 1), torch.zeros_like(x[:, k:])], 1)


def norm_by_law(dice):
    k = dice.choice((0, 2, 8, 64))
    return lambda x: x * 3**0.5 if k == 0 else x / x[::k].square().mean().sqrt()


def cut_lstm(dice):
    k = dice.choice((40, 48, 64, 96))
    return lambda x: cut_lstm.problem.run([x[:, -k:].contiguous()])[0]


@unittest.skipIf(torch is None, "there is no torch here")
class Shortcuts(unittest.TestCase):
    def survivors(self, p, generator, calls_of_a_kind=SETS):
        """How many variants are right wherever they are asked: in trials, and in mixed batches."""
        admitted = admission.admit(p, "cpu")
        is_plain = not list(p.models[p.dtype].parameters())
        rules = {}
        for kind in admitted.names:
            truth = p.truth(p.draw(19, kind), 19)
            admission.refine(truth, admitted.gauges[kind], p, is_plain)
            rules[kind] = compare.honest_rules(truth, "fp32", True)[0]

        def is_right(answer, seed, kind):
            x = p.draw(seed, kind)
            shifts = admission.shifts_of(x, p) if admission.has_scale_of_its_own(x, admitted.gauges[kind]) else ()
            want = p.run(x)[0]
            (rule,) = compare.at_own_scale([rules[kind]], [want], admission.SMALL_OUTPUT, shifts)
            return float(compare.excess(answer(*x).reshape(want.shape), want, rule)) <= 1

        def survives(number):
            dice = random.Random(number)
            answer = generator(dice)
            others = [x for x in admitted.others if x != "signs" for _ in range(KINDS[x].draws)]
            hidden = in_turn(others, dice)[: LEAST_BEFORE_BATCHES - 1]
            mixed = [x for x in admitted.others for _ in range(calls_of_a_kind)]
            asked = [OWN, OWN, "signs", *hidden, *mixed]
            return all(is_right(answer, 1000 * number + i, kind) for i, kind in enumerate(asked))

        return sum(survives(i) for i in range(VARIANTS))

    def test_a_part_of_a_mean(self):
        self.assertEqual(self.survivors(problem("(x - 0.5).square().mean()", "torch.rand(512, 1024)"), sampled_mean), 0)

    def test_a_part_of_a_mean_of_what_is_alike_row_by_row(self):
        self.assertEqual(
            self.survivors(
                problem(
                    "torch.mean(1 - torch.nn.functional.cosine_similarity(x, x.flip(1), dim=1))", "torch.rand(2048, 64)"
                ),
                lambda dice: lambda x: part_of_cosines(dice)(x, x.flip(1)),
            ),
            0,
        )

    def test_a_decay_that_is_cut(self):
        for decay in DECAYS:
            p = problem(
                "(x * torch.exp((torch.arange(2048.0, device=x.device, "
                f"dtype=x.dtype) - 2047) * {-math.log(decay)})).sum(1)",
                "torch.randn(32, 2048)",
            )
            self.assertLessEqual(self.survivors(p, cut_decay(decay)), 3, decay)

    def test_a_look_at_some_numbers(self):
        self.assertEqual(self.survivors(problem("torch.relu(x)", "torch.rand(512, 512)"), look), 0)

    def test_a_product_that_is_cut(self):
        self.assertEqual(self.survivors(problem("torch.cumprod(x, dim=1)", "torch.rand(32, 2048)"), cut_product), 0)

    def test_a_norm_from_the_law_or_a_part(self):
        self.assertEqual(
            self.survivors(problem("x / x.square().mean().sqrt()", "torch.rand(1024, 1024)"), norm_by_law), 0
        )

    def test_a_history_that_is_cut(self):
        cut_lstm.problem = problem(
            "self.lstm(x)[0][:, -1]", "torch.rand(2, 128, 16)", "self.lstm = torch.nn.LSTM(16, 32, 2, batch_first=True)"
        )
        self.assertEqual(self.survivors(cut_lstm.problem, cut_lstm), 0)


if __name__ == "__main__":
    unittest.main()
