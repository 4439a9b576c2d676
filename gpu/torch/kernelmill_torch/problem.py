"""A problem as KernelBench writes it: `Model`, `get_inputs`, `get_init_inputs`. Trusted code, run by the referee.

Inputs are drawn on the device from a secret seed with the problem's own code, so distribution and shapes are the
problem's; floating ones take the task's precision, or keep the types that they have, integers stay what they are. What
a right answer is, the model says in double precision where it can run so."""

import contextlib
import copy
import importlib.util
import io
import math
import re
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

import torch

from kernelmill_torch import contents, variants
from kernelmill_torch.buffers import Layout, TensorSpec
from kernelmill_torch.candidate import PRECISIONS, calling_on_copies, made_in, seed_everything
from kernelmill_torch.contents import CHUNK, Traits, widened
from kernelmill_torch.faults import lacks_memory
from kernelmill_torch.task_files import path_in
from kernelmill_torch.uninitialised import filled

PLAIN = (int, float, bool, type(None), str)
MOST_VALUES = 64
OUT_OF_MEMORY = (MemoryError, torch.cuda.OutOfMemoryError)
# Functions that end the process, or on a GPU its context, when a value is outside of their domain. Integers among the inputs stay what
# they are, so what takes indices or classes is in danger only where numbers are cast to them.
CHECKED_DOMAIN = re.compile(
    r"binary_cross_entropy|BCELoss|bernoulli|multinomial|\.(?:long|int|short|byte)\(|"
    r"\.(?:to|type)\(\s*[^\n]*torch\.(?:u?int|long|short|Int|Long|Short)"
)


@contextlib.contextmanager
def one_word_for_memory():
    """Who finds too little memory raises MemoryError, in whatever library."""
    try:
        yield
    except RuntimeError as e:
        if lacks_memory(e):
            raise MemoryError(str(e)) from None
        raise


class BadProblem(Exception):
    """The problem itself cannot be judged: a fault of the configuration."""

    def __init__(self, category: str, message: str):
        super().__init__(message)
        self.category = category


@dataclass
class Flips:
    """Elements of an output that may be rounded otherwise where a model rounds on its way; see roundings.py."""

    share: float = 0.0
    size: float = 0.0  # by how much at most


@dataclass
class Truth:
    """What is right for one set of inputs, one entry an output.

    `level` is how far off the problem's own precision is, relative to |want| + spread; `spread` is the root mean
    square of the finite elements."""

    want: list[torch.Tensor]
    level: list[float] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)  # of level, in float32; see admission.py
    gain: list[float] = field(default_factory=list)  # of small changes, on contents other than the problem's own
    is_finite: bool = True  # all of it, also in the problem's own precision
    is_exact: bool = True  # it is of double precision
    types: list[torch.dtype] = field(default_factory=list)  # of the model's own outputs; none: float32
    flips: list[Flips] = field(default_factory=list)  # of a model that rounds on its way


def is_constant(x: Any) -> bool:
    """What inputs may be besides tensors: a plain value, or a short list of some, which candidates are given as a list."""
    if isinstance(x, (list, tuple)):
        return len(x) <= MOST_VALUES and all(isinstance(y, PLAIN) for y in x)
    return isinstance(x, PLAIN)


def flatten(out: Any) -> list[torch.Tensor]:
    """The tensors that a model returned. Raises BadProblem for what we do not compare."""
    items = list(out) if isinstance(out, (tuple, list)) else [out]
    for x in items:
        if not isinstance(x, torch.Tensor):
            raise BadProblem(
                "unsupported_problem",
                f"Model.forward returns a {type(x).__name__}; tensors and tuples of tensors can be compared",
            )
    return [x.detach() for x in items]


class Problem:
    """One loaded problem. REQUIRES: one at a time draws inputs (the generators are global)."""

    def __init__(
        self,
        directory: str,
        device: str,
        precision: str = "fp32",
        mutates: Sequence[int] = (),
        constants: Optional[dict[str, Any]] = None,
    ):
        """`mutates`: positions of inputs that the model writes to, as the task declares; `constants`: of the module, that are other
        ones in a variant."""
        self.directory, self.device, self.mutates = directory, device, tuple(mutates)
        self.dtype = PRECISIONS[precision]  # of all that floats; None: each tensor keeps its own
        try:
            self.path = path_in(directory, "problem.py")
        except OSError as e:
            raise BadProblem("bad_task", str(e)) from None
        with open(self.path, encoding="utf-8") as file:
            self.text = file.read()
        self.constants = constants
        self.module = self._import(constants)
        self.init_inputs = self._call("get_init_inputs", default=[])
        self.models: dict[torch.dtype, torch.nn.Module] = {}
        self.model_key: Optional[tuple[int, str]] = None
        self.exact = True  # whether the model runs in double precision
        self.has_been_exact = False  # it did
        self.is_looked_at = False  # candidates come from now on
        self.was_short_of_memory = False  # and did not because of that
        self.is_random = False  # whether the model draws random numbers itself; the bench finds out
        self.dense_terms = 0.0  # of the longest sum with its parameters; 0: not known, or there is none
        self.output_elements = 1
        self.has_integer_outputs = False
        self.is_float32 = self.dtype == torch.float32  # all that floats
        self.rounds = False  # to narrow types on its way, in double precision as well; see roundings.py
        self.known_traits: Optional[list[Optional[Traits]]] = None  # of the inputs

    def _import(self, constants: Optional[dict[str, Any]]):
        spec = importlib.util.spec_from_file_location("kernelmill_problem", self.path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            if constants:
                module = self._varied(module, constants)
        except BadProblem:
            raise
        except Exception as e:
            missing = isinstance(e, ImportError)
            raise BadProblem(
                "unsupported_problem" if missing else "bad_problem",
                f"failed to import {self.path}: {type(e).__name__}: {e}",
            ) from None
        for name in ("Model", "get_inputs"):
            if not hasattr(module, name):
                raise BadProblem("bad_problem", f"{self.path} does not define {name}")
        return module

    def _varied(self, module, constants: dict[str, Any]):
        try:
            return variants.varied(module, self.text, self.path, constants)
        except ValueError as e:
            raise BadProblem("bad_problem", f"failed to make a variant of {self.path}: {e}") from None

    def _call(self, name: str, default=None):
        function = getattr(self.module, name, None)
        if function is None:
            return default
        try:
            with one_word_for_memory():
                return list(function())
        except MemoryError:
            raise  # who else holds memory is not the problem's fault
        except Exception as e:
            raise BadProblem("bad_problem", f"{name}() of {self.path} failed: {type(e).__name__}: {e}") from None

    def init_blob(self) -> bytes:
        """The values of get_init_inputs, for torch.load."""
        file = io.BytesIO()
        torch.save(self.init_inputs, file)
        return file.getvalue()

    def draw(self, seed: int, kind: str = contents.OWN, law: Optional[int] = None) -> list[Any]:
        """Fresh inputs on the device, of a kind that the problem has; else its own. Inputs of one law are alike in what a kind
        leaves open (contents.of_kind); a seed has a law of its own. Waits for the device only before the first of another kind."""
        return self.draw_other(seed, kind, law) or self._draw(seed)

    def draw_other(self, seed: int, kind: str, law: Optional[int] = None) -> Optional[list[Any]]:
        """The same; None where no input can be of this kind."""
        traits = self.traits() if kind != contents.OWN else []
        return contents.of_kind(self._draw(seed), kind, seed if law is None else law, traits)

    def traits(self) -> list[Optional[Traits]]:
        """Of floating inputs, as one draw shows them."""
        if self.known_traits is None:
            self.known_traits = [
                contents.traits_of(x, self.output_elements)
                if isinstance(x, torch.Tensor) and x.is_floating_point()
                else None
                for x in self._draw(3)
            ]
        return self.known_traits

    def _draw(self, seed: int) -> list[Any]:
        seed_everything(seed)
        with made_in(self.device), filled():
            inputs = self._call("get_inputs")
        result = []
        for x in inputs:
            if isinstance(x, torch.Tensor):
                x = x.detach().to(self.device)
                if x.is_floating_point() and self.dtype is not None:
                    x = x.to(self.dtype)
            elif not is_constant(x):
                raise BadProblem("unsupported_problem", f"get_inputs() of {self.path} returns a {type(x).__name__}")
            result.append(x)
        return result

    def build(self, seed: int, place: str) -> None:
        """Makes the models of a seed: the problem's precision and, while it can be had, double.

        Parameters are made in `place`: "cpu", as the benchmark does, or the device, which is many times faster and
        gives other numbers."""
        if self.model_key == (seed, place):
            return
        self.models.clear()
        self.model_key = None  # what follows may not fit
        seed_everything(seed)
        try:
            with one_word_for_memory(), made_in(place):
                model = self.module.Model(*self.init_inputs)
        except MemoryError:
            raise
        except Exception as e:
            raise BadProblem(
                "unsupported_problem" if isinstance(e, (ImportError, OSError)) else "bad_problem",
                f"Model(...) of {self.path} failed: {type(e).__name__}: {e}",
            ) from None
        model = model.to(self.device)
        if self.exact:
            self.models[torch.float64] = copy.deepcopy(model).double()
        self.models[self.dtype] = model if self.dtype in (None, torch.float32) else model.to(self.dtype)
        self.model_key = (seed, place)

    def call(self, model: torch.nn.Module, inputs: list[Any]) -> list[torch.Tensor]:
        """What a model returns and, behind it, what it leaves in the inputs that it is declared to write to: copies, so that
        those that are given stay as they are."""
        with torch.no_grad(), one_word_for_memory():
            return flatten(calling_on_copies(model, self.mutates)(*inputs))

    def run(self, inputs: list[Any]) -> list[torch.Tensor]:
        """The model in the problem's own precision."""
        return self.call(self.models[self.dtype], inputs)

    def run_exact(self, inputs: list[Any]) -> Optional[list[torch.Tensor]]:
        """The model in double precision; None when it cannot run so here, and never again, or, where it once did, on these inputs.
        Raises MemoryError where it once did and too little is left: who takes memory must not decide what is right from then on; and
        what libraries say beside a candidate."""
        if not self.exact:
            return None
        wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            result = self.call(self.models[torch.float64], wide)
            self.has_been_exact = True
            return result
        except Exception as e:
            if "device-side assert" in str(e) or "illegal memory" in str(e):
                raise
            if not self.has_been_exact:
                self.forget_exact(lacks_memory(e))
            elif (
                lacks_memory(e)
                or self.is_looked_at
                and isinstance(e, RuntimeError)
                and not isinstance(e, torch.linalg.LinAlgError)
            ):
                raise
            return None
        finally:
            torch.set_default_dtype(before)

    def forget_exact(self, is_short: bool = False) -> None:
        """No double precision from now on. `is_short`: for want of memory."""
        self.exact = False
        self.was_short_of_memory |= is_short
        self.models.pop(torch.float64, None)

    def truth(self, inputs: list[Any], seed: int) -> Truth:
        """What is right for these inputs. The generators are seeded as for the candidate's call."""
        seed_everything(seed)
        exact = self.run_exact(inputs)  # first, for it takes most memory, and leaves the inputs as they are
        seed_everything(seed)
        plain = self.run(inputs)
        result = Truth(plain if exact is None else exact, is_exact=exact is not None, types=[x.dtype for x in plain])
        result.is_finite = are_finite(plain) and (exact is None or are_finite(exact))
        for own, want in zip(plain, result.want):
            if not want.is_floating_point():
                result.level.append(0.0)
                result.spread.append(0.0)
                continue
            spread = root_mean_square(want)
            result.spread.append(spread)
            result.level.append(0.0 if exact is None else relative_error(own, want, spread))
        return result

    def plain_truth(self, inputs: list[Any], seed: int) -> Truth:
        """The model's own outputs, which suites compare with."""
        seed_everything(seed)
        plain = self.run(inputs)
        zeros = [0.0] * len(plain)
        return Truth(plain, zeros, zeros, is_finite=are_finite(plain), is_exact=False, types=[x.dtype for x in plain])

    def has_checked_domain(self) -> bool:
        """Whether numbers outside of the range of its own inputs may end the process."""
        return CHECKED_DOMAIN.search(self.text) is not None

    def layout(self, place: str) -> Layout:
        """Shapes and types of one set, found by drawing and running once."""
        inputs = self.draw(1)
        self.build(1, place)
        outputs = self.run(inputs)
        self.output_elements = sum(x.numel() for x in outputs)
        self.has_integer_outputs = any(not x.is_floating_point() for x in outputs)
        model = self.models[self.dtype]
        tensors = [x for x in [*inputs, *outputs, *model.parameters(), *model.buffers()] if isinstance(x, torch.Tensor)]
        self.is_float32 = all(x.dtype == torch.float32 for x in tensors if x.is_floating_point())
        return Layout(
            [TensorSpec.of(x) if isinstance(x, torch.Tensor) else None for x in inputs],
            [TensorSpec(tuple(x.shape), tuple(torch.empty(x.shape, device="meta").stride()), x.dtype) for x in outputs],
            [None if isinstance(x, torch.Tensor) else x for x in inputs],
        )


def chunks(*tensors: torch.Tensor):
    """The same parts of several tensors, flat; copies in a wider type of those that are narrow."""
    flat = [x.reshape(-1) for x in tensors]
    for at in range(0, max(1, flat[0].numel()), CHUNK):
        yield [widened(x[at : at + CHUNK]) for x in flat]


def are_finite(outputs: list[torch.Tensor]) -> bool:
    floating = [x for x in outputs if x.is_floating_point()]
    if not floating or all(map(math.isfinite, torch.stack(norms_of(floating)).tolist())):
        return True
    return all(bool(torch.isfinite(part).all()) for x in floating for (part,) in chunks(x))


def root_mean_square(x: torch.Tensor) -> float:
    """Of the finite elements; 0 when there are none."""
    if not x.numel():
        return 0.0
    norm = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(part, dtype=torch.float64) for (part,) in chunks(x)])
    )
    if math.isfinite(value := float(norm)):
        return value / math.sqrt(x.numel())
    finite = [part[torch.isfinite(part)].double() for (part,) in chunks(x)]
    count = sum(part.numel() for part in finite)
    return math.sqrt(sum(float(part.square().sum()) for part in finite) / max(1, count))


def norms_of(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of each, added in double precision; on a GPU in few launches where this torch can (2.4)."""
    tensors = [x if x.element_size() > 1 else x.float() for x in tensors]
    if tensors[0].is_cuda:
        try:
            return list(torch._foreach_norm(tensors, 2, dtype=torch.float64))
        except (AttributeError, TypeError):
            pass
    return [
        torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(part, dtype=torch.float64) for (part,) in chunks(x)])
        )
        for x in tensors
    ]


def root_mean_squares(outputs: list[torch.Tensor]) -> list[float]:
    """Of each; waits for the device once where all is finite."""
    floating = [x for x in outputs if x.is_floating_point()]
    known = iter(torch.stack(norms_of(floating)).tolist() if floating else [])
    found = [next(known) if x.is_floating_point() else 0.0 for x in outputs]
    return [
        value / math.sqrt(max(1, x.numel())) if math.isfinite(value) else root_mean_square(x)
        for x, value in zip(outputs, found)
    ]


def relative_error(got: torch.Tensor, want: torch.Tensor, spread: float) -> float:
    """The largest |got - want| / (|want| + spread) over finite elements."""
    if not want.numel():
        return 0.0
    least = max(spread, 1e-300)
    worst = torch.stack([(a.double() - b).abs_().div_(b.abs().add_(least)).max() for a, b in chunks(got, want)]).max()
    if math.isfinite(value := float(worst)):
        return value
    worst = torch.zeros((), dtype=torch.float64, device=want.device)
    for a, b in chunks(got, want):
        off = (a.double() - b).abs() / (b.abs() + least)
        worst = torch.maximum(worst, torch.where(torch.isfinite(off), off, torch.zeros_like(off)).max())
    return float(worst)
