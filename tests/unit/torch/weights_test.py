"""Of a model's parameters: which every call must read, and how far an honest answer may be off."""

import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import admission, compare, reading, weights
    from kernelmill_torch.contents import OWN
    from problems import problem

MIB = 1 << 20
SQUARE = "self.a = nn.Linear(512, 512, bias=False)"  # a mebibyte
TWO = SQUARE + "; self.b = nn.Linear(512, 512, bias=False)"


def weighty(call, build=SQUARE, given="torch.rand(4, 512) + 0.5", **more):
    return problem(call, given, build, **more)


@unittest.skipIf(torch is None, "there is no torch here")
class MustBeRead(unittest.TestCase):
    def setUp(self):
        for module, name, value in (weights, "SECONDS", 60.0), (reading, "L2_BYTES", 0):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)

    def mib(self, *what, **more):
        p = weighty(*what, **more)
        return weights.least_bytes(p, weights.reads_of(p)) / MIB / 0.75

    def test_a_dense_operation_reads_its_weights(self):
        for call in (
            "self.a(x)",
            "self.a(x) * 2 + 1",
            "torch.relu(self.a(x)).sum(1)",
            "F.softmax(self.a(x), dim=1)[:, :3]",
            "x @ self.a.weight",
        ):
            self.assertEqual(self.mib(call), 1.0, call)
        conv = "self.a = nn.Conv2d(128, 256, 3, bias=False)"
        self.assertEqual(
            self.mib("F.relu(self.a(x.view(4, 128, 4, 4)))", conv, "torch.randn(4, 2048)"), 128 * 256 * 9 * 4 / MIB
        )
        self.assertEqual(self.mib("self.b(torch.sigmoid(self.a(x)))", TWO), 2.0)

    def test_what_a_sum_or_a_second_layer_makes_smaller_need_not_be(self):
        for call in "self.a(x).sum(1)", "self.a(x)[:, :7]", "torch.sigmoid(self.a(x).mean(1))":
            self.assertEqual(self.mib(call), 0.0, call)
        for call in "self.b(self.a(x))", "self.a(x) + self.b(x)", "self.b(self.a(x) * 3)":
            self.assertEqual(self.mib(call, TWO), 0.0, call)

    def test_what_does_not_change_the_output_need_not_be(self):
        self.assertEqual(self.mib("torch.clamp(self.a(x), 5e9, 6e9)"), 0.0)
        self.assertEqual(
            self.mib("self.b(torch.relu(self.a(x)))", TWO, "torch.rand(1, 512) + 0.5"), 1.0
        )  # half of its columns are met by zeros

    def test_lookups_and_known_numbers_need_not_be(self):
        self.assertEqual(self.mib("self.a(x)", "self.a = nn.Embedding(4096, 64)", "torch.randint(0, 4096, (64,))"), 0.0)
        self.assertEqual(self.mib("x @ self.a", "self.register_buffer('a', torch.ones(512, 512))"), 0.0)

    def test_gates_of_a_layer_that_is_run_step_by_step_count_where_it_is_one_operation(self):
        for name in "_cudnn_rnn", "mkldnn_rnn_layer", "lstm":
            w, x = torch.randn(64, 64), torch.randn(4, 64)
            watching = weights.Watching([w])
            watching.take(name, (x, w), [x, w], [torch.randn(4, 64)])
            self.assertEqual(watching.finish([]).bytes_read(w), 64 * 64 * 4)

    def test_the_cache_may_hold_some(self):
        reading.L2_BYTES = MIB // 4
        self.assertEqual(self.mib("self.a(x)"), 0.5)
        reading.L2_BYTES = MIB
        self.assertEqual(self.mib("self.a(x)"), 0.0)

    def test_smaller_types_are_packed_further(self):
        self.assertAlmostEqual(
            self.mib("self.a(x)", "self.a = nn.Linear(512, 1024)", precision="bf16"), 0.6 / 0.75, places=2
        )

    def test_weights_are_what_they_were(self):
        p = weighty("self.a(x)")
        before = p.models[torch.float32].a.weight.clone()
        weights.least_bytes(p, weights.reads_of(p))
        self.assertTrue(torch.equal(before, p.models[torch.float32].a.weight))

    def test_random_and_slow_models_have_no_floor(self):
        p = weighty("self.a(x)")
        p.is_random = True
        self.assertEqual(weights.least_bytes(p, weights.reads_of(p)), 0.0)
        weights.SECONDS = 0.0
        self.assertEqual(self.mib("self.a(x)"), 0.0)

    def test_the_longest_sum_is_known(self):
        for call, build, given, terms in (
            ("self.a(x)", SQUARE, "torch.randn(4, 512)", 512),
            ("self.a(x)", "self.a = nn.Conv2d(8, 16, 3)", "torch.randn(1, 8, 9, 9)", 72),
            ("self.a(x)", "self.a = nn.ConvTranspose2d(8, 16, 3)", "torch.randn(1, 8, 9, 9)", 72),
            ("x @ x.t()", "pass", "torch.randn(4, 100)", 100),
        ):
            self.assertEqual(weights.reads_of(weighty(call, build, given)).terms, terms, call)
        for call, build, given, terms in (
            ("x @ x.t()", "pass", "torch.randn(4, 100)", 0),
            ("self.a(x)", SQUARE, "torch.randn(4, 512)", 512),
            ("self.a(x)", "self.a = nn.Conv2d(8, 16, 3)", "torch.randn(1, 8, 9, 9)", 0),
        ):
            self.assertEqual(weights.reads_of(weighty(call, build, given)).terms_of_weights, terms, call)


def in_sequence(x, w):
    total = torch.zeros(x.shape[0], w.shape[0])
    for k in range(x.shape[1]):
        total += x[:, k, None] * w[:, k]
    return total


def by_halves(dtype):
    """The product of numbers that are split in two, without that of the lower ones."""

    def answer(x, w):
        (a, b), (c, d) = ((y.to(dtype).float(), (y - y.to(dtype).float()).to(dtype).float()) for y in (x, w))
        return a @ c.t() + (a @ d.t() + b @ c.t())

    return answer


def to_tf32(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def by_tf32(x, w):
    (a, b), (c, d) = ((to_tf32(y), to_tf32(y - to_tf32(y))) for y in (x, w))
    return a @ c.t() + (a @ d.t() + b @ c.t())


def scaled(bits):
    def answer(x, w):
        scale = w.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        return x @ (torch.round(w / scale) * scale).t()

    return answer


def first_bits(bits):
    """Of the words, with half of what is cut off."""

    def answer(x, w):
        cut = 32 - bits
        return x @ ((w.view(torch.int32) >> cut << cut) | 1 << (cut - 1)).view(torch.float32).t()

    return answer


@unittest.skipIf(torch is None, "there is no torch here")
class Bound(unittest.TestCase):
    """Of a layer: room for honest arithmetic in any order, none for weights of 16 bits."""

    def worst(self, answers, width, draws=3, rows=2):
        """The largest error of each, in units of its bound, and the least of the draws' largest."""
        p = weighty("self.a(x)", f"self.a = nn.Linear({width}, 1024, bias=False)", f"torch.randn({rows}, {width})")
        p.dense_terms = weights.reads_of(p).terms
        found = {x: [] for x in answers}
        for seed in range(draws):
            (x,) = p.draw(seed)
            truth = p.truth([x], seed)
            admission.refine(truth, admission.Gauge(OWN), p, False)
            (rule,) = compare.honest_rules(truth, "fp32", False)
            for name, answer in answers.items():
                with torch.no_grad():
                    got = answer(x, p.models[torch.float32].a.weight.detach())
                found[name].append(float(compare.excess(got, truth.want[0], rule)))
        return found

    def test_honest_orders_and_splits_have_twice_the_room_that_they_need(self):
        answers = {
            "in sequence": in_sequence,
            "bfloat16 halves": by_halves(torch.bfloat16),
            "tf32 halves": by_tf32,
            "plain": lambda x, w: x @ w.t(),
        }
        for width in 64, 1024, 8192:
            for name, errors in self.worst(answers, width).items():
                self.assertLess(max(errors), 0.5, (name, width))

    def test_weights_of_16_bits_are_wrong(self):
        answers = {
            "scaled": scaled(16),
            "bfloat16": first_bits(16),
            "18 bits": first_bits(18),
            "20 bits": first_bits(20),
        }
        for width in 1024, 8192:
            for name, errors in self.worst(answers, width).items():
                self.assertGreater(max(errors), 1.0, (name, width))  # all of some ten trials must be right

    def test_floors_of_weights(self):
        def floor(terms, level=0.0, kind=OWN):
            return admission.floor_of(9, admission.Gauge(kind, [0.0], [0.0], [0.0]), 0, False, terms, level)

        self.assertEqual(floor(512), 2.0**-17)
        self.assertEqual(floor(2.0**18), 2.0**-16)
        self.assertEqual((floor(2.0**30), floor(0), floor(512, kind="outliers")), (2.0**-15,) * 3)
        self.assertEqual(floor(512, level=2.0**-18), 2.0**-16)
        self.assertEqual(floor(512, level=1.0), 2.0**-15)

    def test_where_it_is_unknown_what_torch_loses_the_bound_is_wide(self):
        p = weighty("self.a(x)")
        p.dense_terms, p.exact = 512, False
        truth = p.truth(p.draw(1), 1)
        admission.refine(truth, admission.Gauge(OWN), p, False)
        self.assertEqual(truth.floor, [2.0**-15])


if __name__ == "__main__":
    unittest.main()
