"""What is right for a problem's inputs in double precision, and what it means where memory lacks."""

import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import admission
    from kernelmill_torch.candidate import describe
    from kernelmill_torch.contents import OWN
    from kernelmill_torch.referee import fault_of
    from problems import problem

    # What a problem admits is not to depend on how busy this machine is.
    admission.SECONDS = dict.fromkeys(admission.SECONDS, 100.0)


@unittest.skipIf(torch is None, "there is no torch here")
class Exactness(unittest.TestCase):
    def test_a_process_that_takes_all_memory_does_not_end_it(self):
        p = problem("x * 2")
        self.assertIsNotNone(p.run_exact(p.draw(1)))
        model = p.models[torch.float64]

        def short_of_memory(_x):
            raise MemoryError

        model.forward = short_of_memory
        with self.assertRaises(MemoryError):
            p.run_exact(p.draw(1))
        del model.forward
        self.assertIsNotNone(p.run_exact(p.draw(1)))

    def test_nor_one_that_breaks_what_lies_below_torch(self):
        p = problem("x * 2")
        inputs = p.draw(1)
        self.assertIsNotNone(p.run_exact(inputs))
        p.is_looked_at = True
        for words, kind in (
            ("CUBLAS_STATUS_NOT_INITIALIZED", MemoryError),
            ("No valid execution plans built.", MemoryError),
            ("CUBLAS_STATUS_EXECUTION_FAILED", RuntimeError),
        ):
            with unittest.mock.patch.object(p.models[torch.float64], "forward", side_effect=RuntimeError(words)):
                with self.assertRaisesRegex(kind, words):
                    p.run_exact(inputs)
            self.assertIsNotNone(p.run_exact(inputs))

    def test_what_the_model_itself_refuses_ends_it_for_these_inputs_alone(self):
        p = problem("x * 2 if x.dtype == torch.float32 or x.abs().max() <= 6 else 1 // 0")
        admitted = admission.admit(p, "cpu")
        self.assertTrue(p.exact)
        self.assertEqual(admitted.refused["large"], "the model fails")
        self.assertIn("small", admitted.names)
        self.assertIsNone(p.run_exact([torch.full((4,), 7.0)]))
        self.assertIsNotNone(p.run_exact([torch.full((4,), 5.0)]))
        moved = problem("x * 2 if x.dtype == torch.float32 or x.max() <= 1 else 1 // 0", given="torch.ones(64, 256)")
        self.assertIn(OWN, admission.admit(moved, "cpu").gauges)
        self.assertTrue(moved.exact)

    def test_it_is_of_the_inputs_as_they_were_drawn(self):
        p = problem("x.mul_(2)", mutates=(0,))
        self.assertLess(p.truth(p.draw(1), 1).level[0], 1e-6)

    def test_what_becomes_of_small_changes_is_of_them_too(self):
        for call in "x.mul_(2)", "x * 2":
            mutates = (0,) if "mul_" in call else ()
            gauge = admission.measured(problem(call, "torch.rand(8, 8)", mutates=mutates), "signs")
            self.assertLess(gauge.shift[0], 10)
            self.assertFalse(gauge.is_random)

    def test_a_draw_that_has_none_is_held_by_what_its_own_precision_allows(self):
        p = problem("x * 2 if x.dtype == torch.float32 else 1 // 0", "torch.rand(64, 64)")
        p.has_been_exact, p.dense_terms = True, 1e3
        truth = p.truth(p.draw(1), 1)
        self.assertFalse(truth.is_exact)
        admission.refine(truth, admission.Gauge(OWN), p, False)
        self.assertEqual(truth.floor, [admission.LARGEST_FLOOR])

    def test_it_runs_while_nothing_else_is_held(self):
        """It takes four times the memory of a run in float32,
        and a sixth of an 80 GB card is a large problem's inputs."""
        p, done = problem("x * 2"), []
        with (
            unittest.mock.patch.object(p.models[torch.float32], "forward", lambda x: done.append("own") or x * 2),
            unittest.mock.patch.object(p.models[torch.float64], "forward", lambda x: done.append("exact") or x * 2),
        ):
            p.truth(p.draw(1), 1)
            self.assertEqual(done, ["exact", "own"])
            del done[:]
            admission.measured(p, "signs")
            self.assertEqual(done, ["own", "own", "exact", "own", "exact"])

    def test_what_never_ran_so_has_none(self):
        p = problem("x * 2")

        def short_of_memory(_x):
            raise MemoryError

        p.models[torch.float64].forward = short_of_memory
        self.assertIsNone(p.run_exact(p.draw(1)))
        self.assertEqual((p.exact, p.was_short_of_memory), (False, True))


@unittest.skipIf(torch is None, "there is no torch here")
class MemoryThatLacks(unittest.TestCase):
    """Whatever library says so, and wherever."""

    WORDS = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"

    def test_is_no_fault_of_the_problem(self):
        p = problem("x * 2")
        inputs = p.draw(1)
        with unittest.mock.patch.object(p.models[torch.float32], "forward", side_effect=RuntimeError(self.WORDS)):
            with self.assertRaises(MemoryError):
                p.run(inputs)
        for name in "get_inputs", "Model":
            with unittest.mock.patch.object(p.module, name, side_effect=RuntimeError(self.WORDS)):
                with self.assertRaises(MemoryError):
                    p.draw(1) if name == "get_inputs" else p.build(2, "cpu")

    def test_leaves_no_problem_without_models(self):
        p = problem("self.w(x)", build="self.w = torch.nn.Linear(256, 4)")
        inputs, key = p.draw(1), p.model_key
        with unittest.mock.patch.object(torch.nn.Module, "double", side_effect=RuntimeError(self.WORDS)):
            with self.assertRaises(RuntimeError):
                p.build(key[0] + 1, "cpu")
        p.build(*key)  # as the next candidate has it
        self.assertEqual(len(p.run(inputs)), 1)

    def test_of_a_candidate_is_its_own_word(self):
        self.assertEqual(describe(RuntimeError(self.WORDS), "runtime_error")["category"], "out_of_memory")
        self.assertEqual(describe(RuntimeError("some other"), "runtime_error")["category"], "runtime_error")

    def test_of_the_referee_is_ours_to_find_out(self):
        self.assertEqual(fault_of(RuntimeError(self.WORDS)).category, "gpu_memory")
        self.assertEqual(fault_of(RuntimeError("some other")).category, "python_failed")
        self.assertEqual(fault_of(ValueError("no message of ours: out of memory")).category, "python_failed")


if __name__ == "__main__":
    unittest.main()
