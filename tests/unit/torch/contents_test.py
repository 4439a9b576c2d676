"""Kinds of contents: what they change, what they keep, which a problem has, and what may be lost on them."""

import math
import types
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import admission, compare, contents, steadiness
    from kernelmill_torch.contents import KINDS, OWN, of_kind, traits_of
    from kernelmill_torch.problem import CHECKED_DOMAIN, Truth
    from problems import problem

    # What a problem admits is not to depend on how busy this machine is.
    USUAL_SECONDS, admission.SECONDS = admission.SECONDS, dict.fromkeys(admission.SECONDS, 100.0)


def of(x, kind, seed=5, outputs=1):
    torch.manual_seed(seed)
    found = of_kind([x], kind, seed, [traits_of(x, outputs)])
    return None if found is None else found[0]


@unittest.skipIf(torch is None, "there is no torch here")
class Domains(unittest.TestCase):
    def test_a_word_is_no_cast(self):
        for text, expected in (
            ("embedding_dimension = 4\nself.patch_to_embedding = nn.Linear(2, 2)", False),
            ("F.nll_loss(x, target)", False),
            ("nn.BCELoss()", True),
            ("self.table(x.long())", True),
            ("x.to(device, torch.int64)", True),
            ("x.type(torch.LongTensor)", True),
            ("x.to(f(), torch.long)", True),
            ("x.to(\n torch.int8)", True),
        ):
            self.assertEqual(bool(CHECKED_DOMAIN.search(text)), expected, text)


@unittest.skipIf(torch is None, "there is no torch here")
class BesideOthers(unittest.TestCase):
    """What arenas and processes take while a candidate is judged is taken, too, while contents are tried."""

    def setUp(self):
        for name, said in ("reset_peak_memory_stats", None), ("max_memory_allocated", 7):
            patch = unittest.mock.patch.object(admission.torch.cuda, name, lambda said=said: said)
            patch.start()
            self.addCleanup(patch.stop)

    def test_contents_are_tried_beside_as_much_memory_as_is_in_use_then(self):
        held = []

        class Ballast:
            def __del__(self):
                held.remove("ballast")

        def empty(size, dtype, device):
            self.assertEqual((size, dtype, device), (5, torch.uint8, "cuda"))
            held.append("ballast")
            return Ballast()

        done = []
        with (
            unittest.mock.patch.object(admission, "measured", lambda _problem, kind: done.append((kind, list(held)))),
            unittest.mock.patch.object(
                admission, "try_kind", lambda _problem, kind, *_: done.append((kind.name, list(held))) or "why"
            ),
            unittest.mock.patch.object(admission.torch, "empty", empty),
        ):
            self.assertFalse(
                admission.admit(types.SimpleNamespace(has_checked_domain=lambda: False), "cuda", 5).is_crowded
            )
        self.assertEqual(done[0][0], "own")
        self.assertGreater(len(done), 5)
        self.assertTrue(all(beside == ["ballast"] for _, beside in done))
        self.assertEqual(held, [])

    def test_what_does_not_fit_beside_a_candidate_is_done_without_it(self):
        for fits, exact, is_crowded in (3, False, False), (1, False, True):
            p, held, was = problem("x * 2"), [5], admission.measured

            def measured(problem, kind):
                need = 1 + 2 * problem.exact + 2 * bool(held)
                if need > fits and kind == OWN:
                    raise MemoryError
                return was(problem, kind)

            class Ballast:
                def __del__(self):
                    held.clear()

            with (
                unittest.mock.patch.object(admission, "memory_held", lambda *_: Ballast()),
                unittest.mock.patch.object(admission, "measured", measured),
                unittest.mock.patch.dict(admission.MOST_SECONDS, cuda=0.0),
                unittest.mock.patch.dict(admission.SECONDS, cuda=0.0),
            ):
                admitted = admission.admit(p, "cuda", 5)
            self.assertEqual((p.exact, p.was_short_of_memory, admitted.is_crowded), (exact, not exact, is_crowded))
            self.assertEqual(admitted.full, 7 + 5 * is_crowded)

    def test_a_library_that_finds_no_memory_says_nothing_of_the_model(self):
        for words, why in (
            ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", admission.TOO_LARGE),
            ("some other", "the model fails"),
        ):
            p = types.SimpleNamespace(device="cpu", draw_other=unittest.mock.Mock(side_effect=RuntimeError(words)))
            self.assertEqual(
                admission.try_kind(p, admission.KINDS["signs"], False, admission.Admitted({}, {}, [])), why
            )

    def test_where_it_is_not_there_nothing_is_held(self):
        with unittest.mock.patch.object(
            admission.torch, "empty", unittest.mock.Mock(side_effect=torch.cuda.OutOfMemoryError)
        ):
            self.assertIsNone(admission.memory_held(5, "cuda"))
            with (
                unittest.mock.patch.object(admission, "measured", lambda *_: None),
                unittest.mock.patch.object(admission, "try_kind", lambda *_: "why"),
            ):
                problem = types.SimpleNamespace(has_checked_domain=lambda: False)
                self.assertTrue(admission.admit(problem, "cuda", 5).is_crowded)
                self.assertFalse(admission.admit(problem, "cuda").is_crowded)
                self.assertFalse(admission.admit(problem, "cpu", 5).is_crowded)
        self.assertIsNone(admission.memory_held(5, "cpu"))


@unittest.skipIf(torch is None, "there is no torch here")
class Honest(unittest.TestCase):
    def test_sums_in_another_order_are_right_in_all_draws_of_all_kinds(self):
        p = problem(
            "torch.nn.functional.conv1d(x.view(8, 8, 64), "
            "torch.sin(torch.arange(384.0, dtype=x.dtype)).view(16, 8, 3), padding=1)",
            "torch.randn(8, 8, 64)",
        )
        w = torch.sin(torch.arange(384.0)).view(16, 8, 3)
        admitted = admission.admit(p, "cpu")
        self.assertIn("steep", admitted.others)
        for kind in admitted.others:
            for seed in range(40):
                if seed % 10 == 0:  # a draw by which others are judged
                    truth = p.truth(p.draw(100 + seed, kind), seed)
                    admission.refine(truth, admitted.gauges[kind], p, True)
                    rules = compare.honest_rules(truth, "fp32", True)
                (x,) = p.draw(seed, kind)
                want = p.run([x])
                padded = torch.nn.functional.pad(x.view(8, 8, 64), (1, 1))
                got = sum(torch.einsum("nct,fc->nft", padded[:, :, k : k + 64], w[:, :, k]) for k in (2, 0, 1))
                pairs = list(zip([got], want, compare.at_own_scale(rules, want, admission.SMALL_OUTPUT)))
                self.assertEqual(compare.count_bad(pairs), 0, (kind, seed))

    def test_few_outputs_in_another_order_are_right_in_all_draws_of_all_kinds(self):
        """Each is small by chance in some draws, and of another scale in each."""
        decay = "torch.exp((torch.arange(512.0, device=x.device, dtype=x.dtype) - 511) * 0.1)"
        parts = lambda x, n: x.reshape(*x.shape[:-1], -1, n).sum(-1).sum(-1)  # noqa: E731
        for call, given, other in (
            (
                f"(x * {decay}).sum(1)",
                "torch.randn(16, 512)",
                lambda x: parts((x * torch.exp((torch.arange(512.0) - 511) * 0.1)).flip(1), 32),
            ),
            (
                "(x - 0.5).square().mean()",
                "torch.rand(256, 128)",
                lambda x: parts((x - 0.5).square().t(), 64).sum() / x.numel(),
            ),
            ("x.mean()", "torch.randn(256, 128)", lambda x: parts(x.t().contiguous(), 16).mean() / 256),
            (
                "torch.logsumexp(x, 1).mean()",
                "torch.randn(64, 256)",
                lambda x: (parts((x - x.amax(1, keepdim=True)).exp(), 32).log() + x.amax(1)).flip(0).mean(),
            ),
            (
                "torch.nn.functional.cosine_similarity(x, x.flip(1), dim=1).mean()",
                "torch.randn(256, 64)",
                lambda x: (
                    (parts(x * x.flip(1), 16) / (parts(x * x, 16).sqrt() * parts(x * x, 8).sqrt())).flip(0).mean()
                ),
            ),
        ):
            p = problem(call, given)
            admitted = admission.admit(p, "cpu")
            self.assertGreaterEqual(len(admitted.others), 6, call)
            for kind in admitted.others:
                truth = p.truth(p.draw(100, kind), 0)
                admission.refine(truth, admitted.gauges[kind], p, True)
                rules = compare.honest_rules(truth, "fp32", True)
                for seed in range(30):
                    (x,) = p.draw(seed, kind)
                    shifts = admission.shifts_of([x], p)
                    want = p.run([x])
                    pairs = list(
                        zip(
                            [other(x).reshape(want[0].shape)],
                            want,
                            compare.at_own_scale(rules, want, admission.SMALL_OUTPUT, shifts),
                        )
                    )
                    self.assertEqual(compare.count_bad(pairs), 0, (call, kind, seed))

    def test_sums_in_another_order_behind_what_saturates_are_right(self):
        """Of 10^5 sums of numbers that differ by 2^50 one comes within some units of zero."""
        p = problem("torch.sigmoid(self.linear(x))", "torch.randn(512, 256)", "self.linear = torch.nn.Linear(256, 256)")
        weight = p.models[torch.float32].linear.weight
        admitted = admission.admit(p, "cpu")
        apart = near = 0
        for kind in {"steep", "far"} & set(admitted.others):
            truth = p.truth(p.draw(100, kind), 0)
            admission.refine(truth, admitted.gauges[kind], p, False)
            rules = compare.honest_rules(truth, "fp32", True)
            for seed in range(20):
                inputs = p.draw(1000 + seed, kind)
                (want,) = p.run(inputs)
                (rule,) = compare.at_own_scale(rules, [want], admission.SMALL_OUTPUT)
                parts = sum(inputs[0][:, i : i + 64] @ weight[:, i : i + 64].t() for i in (192, 128, 64, 0))
                got = torch.sigmoid(parts + p.models[torch.float32].linear.bias).detach()
                (unsteady,) = steadiness.unsteadiness(inputs, p)
                apart += compare.count_bad([(got, want, rule)]) > 0
                near += compare.count_bad([(steadiness.forgiven(got, want, unsteady), want, rule)]) > 0
                half = torch.sigmoid(inputs[0][:, :128] @ weight[:, :128].t()).detach()
                self.assertGreater(compare.count_bad([(steadiness.forgiven(half, want, unsteady), want, rule)]), 100)
        self.assertGreater(apart, 0)
        self.assertEqual(near, 0)

    def test_no_input_is_moved_out_of_the_domain_of_a_problem(self):
        p = problem("torch.nn.functional.binary_cross_entropy(x, x.flip(0).detach())", "torch.rand(64, 1024)")
        admitted = admission.admit(p, "cpu")
        self.assertIn("extremes", admitted.others)
        for kind in admitted.others:
            inputs = p.draw(3, kind)
            for step in admission.STEP, admission.COARSE_STEP, steadiness.STEP:
                for dtype in torch.float64, torch.float32:
                    (x,) = admission.moved(inputs, step, p, dtype)
                    self.assertGreater(int((x != inputs[0]).sum()), 30000 if kind != "sparse" else 0, kind)
                    self.assertTrue(bool((x >= inputs[0].min()).all()) and bool((x <= inputs[0].max()).all()), kind)
            steadiness.unsteadiness(inputs, p)

    def test_how_large_few_outputs_are_is_known_of_each_draw(self):
        p = problem("x.sum()", "torch.randn(64, 128)")
        admitted = admission.admit(p, "cpu")
        sizes = [admission.shifts_of(p.draw(seed, "far"), p)[0] for seed in range(20)]
        self.assertGreater(max(sizes), 2.0**20 * 64)
        for seed, size in enumerate(sizes):
            exact = float(p.draw(seed, "far")[0].double().square().sum().sqrt())
            self.assertLess(abs(math.log2(size / exact)), 3, seed)
        self.assertTrue(admission.has_scale_of_its_own(p.draw(1), admitted.gauges["far"]))
        self.assertFalse(admission.has_scale_of_its_own(p.draw(1), admitted.gauges[OWN]))


@unittest.skipIf(torch is None, "there is no torch here")
class Contents(unittest.TestCase):
    def test_every_kind_changes_numbers_and_leaves_what_was_drawn(self):
        for kind in KINDS:
            torch.manual_seed(1)
            x = torch.rand(32, 64)
            before = x.clone()
            y = of(x, kind)
            self.assertTrue(torch.equal(x, before), kind)
            self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
            self.assertEqual(torch.equal(x, y), kind == OWN, kind)

    def test_a_seed_gives_the_same_numbers_again_and_another_seed_others(self):
        p = problem("x")
        for kind in KINDS:
            one, again, other = (p.draw(seed, kind)[0] for seed in (7, 7, 8))
            self.assertTrue(torch.equal(one, again), kind)
            self.assertFalse(torch.equal(one, other), kind)

    def test_contents_of_one_law_are_as_large_and_turn_at_one_place_and_differ(self):
        p = problem("x", "torch.rand(64, 256) + 0.5")
        for law in range(40):
            one, other = (p.draw(seed, "large", law)[0] for seed in (7, 8))
            self.assertFalse(torch.equal(one, other))
            self.assertEqual(float(one.max().log2().floor()), float(other.max().log2().floor()))
            one, other = ((x[:, 1:] == x[:, :-1]).all(dim=0) for x in (p.draw(seed, "held", law)[0] for seed in (7, 8)))
            self.assertTrue(torch.equal(one, other))

    def test_small_types_have_traits(self):
        for dtype in torch.float16, torch.bfloat16:  # of which not every torch knows which are equal
            self.assertFalse(traits_of(torch.rand(32, 64).to(dtype), 1).discrete)
            self.assertTrue(traits_of(torch.ones(32, 64).to(dtype), 1).discrete)

    def test_structure_stays(self):
        torch.manual_seed(2)
        a = torch.rand(64, 64)
        upper, symmetric = torch.triu(a), (a + a.t()) / 2
        changed = 0
        for kind in KINDS:
            y, z = of(upper, kind), of(symmetric, kind)
            if y is not None:
                self.assertTrue(torch.equal(y, torch.triu(y)), kind)
                changed += not torch.equal(y, upper)
            if z is not None:
                self.assertTrue(torch.equal(z, z.t()), kind)
        self.assertGreater(changed, 4)

    def test_zeros_stay_whatever_the_dice_say(self):
        x = torch.triu(torch.rand(48, 48))
        for seed in range(200):
            self.assertFalse(bool(torch.tril(of(x, "outliers", seed), -1).any()), seed)

    def test_of_labels_only_signs_change(self):
        labels = torch.randint(0, 2, (512,)).float() * 2 - 1
        self.assertEqual([kind for kind in KINDS if kind != OWN and of(labels, kind) is not None], ["signs"])

    def test_kinds_that_keep_the_range_keep_it(self):
        torch.manual_seed(3)
        x = torch.rand(64, 128)
        for kind in KINDS.values():
            if kind.keeps_range and (y := of(x, kind.name)) is not None:
                self.assertGreaterEqual(float(y.min()), 0.0, kind.name)
                self.assertLessEqual(float(y.max()), 1.0001, kind.name)

    def test_outliers_weigh_in_a_sum_of_any_length(self):
        for n in 1 << 12, 1 << 20:
            torch.manual_seed(4)
            x = torch.rand(n)
            y = of(x, "outliers").double()
            shares = (y / y.sum()).sort(descending=True).values
            self.assertGreater(float(shares[50]), 1e-3)
            self.assertGreater(float((shares[: contents.PLACES // 2]).sum()), 0.4)


@unittest.skipIf(torch is None, "there is no torch here")
class Admission(unittest.TestCase):
    def admitted(self, *what, **more):
        return admission.admit(problem(*what, **more), "cpu")

    def test_what_has_no_finite_answer_is_no_kind_of_the_problem(self):
        found = self.admitted("torch.log(x)")
        self.assertEqual([found.refused[x] for x in ("signs", "few_signs", "sparse")], ["not finite"] * 3)
        self.assertIn("outliers", found.others)

    def test_what_might_end_the_process_is_not_tried(self):
        found = self.admitted("torch.nn.functional.binary_cross_entropy(x, x)")
        self.assertTrue(all(KINDS[x].keeps_range for x in found.names))
        self.assertIn("lessened", found.others)

    def test_what_is_ill_conditioned_is_left_out(self):
        self.assertIn("constant", self.admitted("torch.nn.functional.layer_norm(x, (256,))").refused)

    def test_which_of_equal_numbers_is_the_largest_is_not_asked(self):
        found = self.admitted("torch.argmax(x, dim=1)")
        self.assertNotIn("constant", found.others)
        self.assertIn("unequal", found.others)

    def test_products_have_numbers_near_one(self):
        found = self.admitted("torch.cumprod(x, dim=1)", given="torch.rand(16, 4096)")
        self.assertIn("near_one", found.others)
        self.assertIn("large", found.refused)

    def test_random_numbers_that_are_forgotten_on_its_own_inputs_are_found_on_others(self):
        call = "torch.where(x < 2, x, x + torch.rand_like(x))"
        self.assertFalse(self.admitted(call).gauges[OWN].is_random)
        self.assertTrue(any(x.is_random for x in self.admitted(call).gauges.values()))

    def test_a_problem_without_other_contents_says_so(self):
        found = self.admitted("x.float()", given="torch.randint(0, 9, (64,))")
        self.assertEqual(found.others, [])
        self.assertIn("no other finite contents", found.notes()[0])

    def test_a_state_that_is_forgotten_on_its_own_inputs_is_held_on_others(self):
        p = problem(
            "self.lstm(x)[0][:, -1]",
            given="torch.rand(2, 128, 16)",
            build="self.lstm = torch.nn.LSTM(16, 32, 2, batch_first=True)",
        )
        found = admission.admit(p, "cpu")
        self.assertIn("held", found.others)
        apart = []
        for kind in OWN, "held":
            worst = 0.0
            for seed in range(6):
                x = p.draw(seed, kind)[0]
                want, got = p.run([x])[0], p.run([x[:, -32:].contiguous()])[0]
                worst = max(worst, float((want - got).abs().max() / want.square().mean().sqrt()))
            apart.append(worst)
        self.assertLess(apart[0], 1e-5)
        self.assertGreater(apart[1], 1e-2)


@unittest.skipIf(torch is None, "there is no torch here")
class Time(unittest.TestCase):
    def tried(self, seconds):
        """Kinds that are tried where each takes so long."""
        clock = iter(x * seconds for x in range(999))
        with (
            unittest.mock.patch.object(admission.time, "monotonic", lambda: next(clock)),
            unittest.mock.patch.object(admission, "SECONDS", USUAL_SECONDS),
            unittest.mock.patch.object(admission, "try_kind", lambda *_: "some reason"),
        ):
            return admission.admit(problem("x"), "cpu")

    def test_a_slow_problem_has_those_that_come_first_and_a_slower_one_some_of_them(self):
        self.assertEqual(self.tried(0.0).untried, [])
        slow = self.tried(4.0)
        self.assertEqual([x for x in slow.untried if KINDS[x].comes_first], [])
        self.assertTrue(slow.untried)
        self.assertIn("near_one", self.tried(25.0).untried)


@unittest.skipIf(torch is None, "there is no torch here")
class Bounds(unittest.TestCase):
    """Of a mean, where honest orders of additions must have room and a part must not pass for the whole."""

    def rule(self, p, kind, seed):
        x = p.draw(seed, kind)[0]
        truth = p.truth([x], seed)
        gauge = admission.measured(p, kind)
        admission.refine(truth, gauge, p, True)
        return x, truth.want[0], compare.honest_rules(truth, "fp32", False)[0]

    def exceeding(self, got, want, rule):
        return float(compare.excess(torch.as_tensor(float(got)).reshape(1).double(), want.reshape(1).double(), rule))

    def test_honest_orders_have_four_times_the_room_that_they_need(self):
        p = problem("x.mean()", given="torch.rand(512, 4096)")
        for kind in admission.admit(p, "cpu").names:
            x, want, rule = self.rule(p, kind, 3)
            by_thread = x.reshape(-1, 1024).cumsum(1)[:, -1]  # 1,024 one by one, then a tree
            atomics = x.sum(1)[torch.randperm(512)].cumsum(0)[-1]  # a tree of each row, then one by one
            for got in by_thread.sum() / x.numel(), atomics / x.numel(), x.sum() / x.numel():
                self.assertLess(self.exceeding(got, want, rule), 0.25, kind)

    def test_a_part_does_not_pass_for_the_whole(self):
        p = problem("x.mean()", given="torch.rand(512, 4096)")
        for name, part in (
            ("1/12 of the rows", lambda x: x[::12]),
            ("half", lambda x: x[:256]),
            ("99 %", lambda x: x[:507]),
            ("a half of each row", lambda x: x[:, ::2]),
        ):
            found = []
            for kind in "outliers", "unequal":
                for seed in range(3):
                    x, want, rule = self.rule(p, kind, seed)
                    found.append(self.exceeding(part(x).double().mean(), want, rule))
            self.assertGreater(max(found), 10, name)

    def test_floors_grow_with_the_terms(self):
        gauges = {x: admission.Gauge(x, [0.0], [0.0], [0.0]) for x in KINDS}
        few, many = (admission.floor_of(n, gauges[OWN], 0, True) for n in (4096, 1 << 24))
        self.assertEqual((few, many), (2.0**-19, 2.0**-15))
        self.assertEqual(admission.floor_of(4096, gauges["outliers"], 0, True), 2.0**-15)
        self.assertEqual(admission.floor_of(4096, gauges[OWN], 0, False), 2.0**-15)
        self.assertGreater(admission.floor_of(1, admission.Gauge("signs", [0.0], [32.0], [0.0]), 0, True), 2.0**-15)

    def test_an_answer_near_zero_by_chance_is_measured_against_its_usual_size(self):
        truth, p = Truth([torch.zeros(())], [0.0], [1e-9]), problem("x.sum()")
        admission.refine(truth, admission.Gauge("signs", [0.0], [0.0], [3.0]), p, True)
        self.assertEqual(truth.spread, [3.0])


if __name__ == "__main__":
    unittest.main()
