// The form `module` of a task in Python.

#include <cctype>

#include <fmt/format.h>

#include "launch/kernel_forms/torch_parts.hpp"

namespace kernelmill::kernel_forms {

namespace {

void put_in(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string filled(const char* form, const exported_kernel& x) {
  std::string text = form;
  put_in(text, "@CLASS@", class_of(x));
  put_in(text, "@NAME@", x.name());
  put_in(text, "@TITLE@", x.title());
  return text;
}

const char* const init_form =
    R"py("""@TITLE@: a kernel that Kernelmill verified, as an nn.Module."""

import torch

from . import kernel as _kernel

@BASE@


class @CLASS@(_Base):
    """@TITLE@. It takes the arguments of the problem's own Model."""

    @classmethod
    def in_place_of(cls, old, *arguments):
        """A module with the parameters and buffers of `old`: by name, else in their order. `arguments` are the
        constructor's. Raises ValueError where they differ in shape."""
        new = cls(*arguments)
        mine, own = ([*x.parameters(), *x.buffers()] for x in (new, old))
        shapes, wanted = ({name: y.shape for name, y in x.state_dict().items()} for x in (new, old))
        if shapes == wanted:
            new.load_state_dict(old.state_dict())
        elif [x.shape for x in mine] == [x.shape for x in own]:
            with torch.no_grad():
                for x, y in zip(mine, own):
                    x.copy_(y)
        else:
            raise ValueError("the kernel has other parameters than the module that it replaces")
        for x, y in zip(mine, own):
            x.data = x.data.to(device=y.device, dtype=y.dtype)
        return new.train(old.training)


__all__ = ["@CLASS@"]
)py";

const char* const function_base = R"py(if hasattr(_kernel, "ModelNew"):
    _Base = _kernel.ModelNew
else:

    class _Base(torch.nn.Module):
        """Calls the kernel's function."""

        def __init__(self, *_arguments):
            super().__init__()

        def forward(self, *inputs):
            return _kernel.@FUNCTION@(@INPUTS@))py";

const char* const test_form =
    R"py("""Compares the kernel with the problem's own model, on the inputs of the problem."""

import importlib.util
import pathlib
import sys
import unittest

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

@IMPORT@

_spec = importlib.util.spec_from_file_location("@NAME@_reference", HERE / "reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

DEVICE = "@DEVICE@"
TYPE = @TYPE@  # that floating tensors take; None: each keeps its own
MUTATES = @MUTATES@  # positions of inputs that the model writes to


def placed(x):
    if isinstance(x, torch.Tensor):
        return x.to(DEVICE, dtype=TYPE if TYPE is not None and x.is_floating_point() else x.dtype)
    return type(x)(placed(y) for y in x) if isinstance(x, (list, tuple)) else x


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [y for one in x for y in tensors(one)] if isinstance(x, (list, tuple)) else []


def copied(x):
    if isinstance(x, torch.Tensor):
        return x.clone()
    return type(x)(copied(y) for y in x) if isinstance(x, (list, tuple)) else x


class Right(unittest.TestCase):
    def test_it_computes_what_the_reference_does(self):
        if DEVICE != "cpu" and not torch.cuda.is_available():
            self.skipTest("the kernel is for a GPU")
        for seed in range(2):
            torch.manual_seed(seed)
            arguments = placed(list(reference.get_init_inputs()))
            model = reference.Model(*arguments).to(DEVICE)
            if TYPE is not None:
                model = model.to(TYPE)
            mine = @CLASS@.in_place_of(model, *arguments)
            inputs = placed(list(reference.get_inputs()))
            same = copied(inputs)
            with torch.no_grad():
                torch.manual_seed(seed)
                want = tensors(model(*inputs)) + [inputs[i] for i in MUTATES]
                torch.manual_seed(seed)
                got = tensors(mine(*same)) + [same[i] for i in MUTATES]
            self.assertEqual(len(got), len(want))
            for x, y in zip(got, want):
                self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype))
                torch.testing.assert_close(x, y, rtol=@RTOL@, atol=@ATOL@)


if __name__ == "__main__":
    unittest.main()
)py";

std::string type_of(const std::string& precision) {
  if (precision == "fp16") return "torch.float16";
  if (precision == "bf16") return "torch.bfloat16";
  return precision == "fp32" ? "torch.float32" : "None";
}

std::string readme_of_python(const exported_kernel& x) {
  auto text =
      fmt::format("# {0}\n{1}. A kernel of Kernelmill, as an `nn.Module`.\n\n"
                  "```python\nfrom {0} import {2}\n\n"
                  "mine = {2}.in_place_of(model, *constructor_arguments)  # with the parameters of "
                  "your module\n"
                  "```\n\n"
                  "`tests/reference.py` shows the module that it replaces, and its arguments.\n\n"
                  "## Install and test\n```sh\npip install .\npython tests/test_{0}.py\n```\n\n",
                  x.name(), x.title(), class_of(x));
  return text + measured_text(x);
}

} // namespace

std::string class_of(const exported_kernel& x) {
  std::string result;
  bool upper = true;
  for (char c : x.name()) {
    if (c == '_') {
      upper = true;
      continue;
    }
    result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return result;
}

std::string torch_init(const exported_kernel& x) {
  auto text = filled(init_form, x);
  const auto& entry = x.what->torch.entry;
  std::string base = "_Base = _kernel.ModelNew";
  if (entry.is_asked()) {
    base = function_base;
    put_in(base, "@FUNCTION@", entry.function);
    put_in(base, "@INPUTS@", entry.as_tuple ? "inputs" : "*inputs");
  }
  put_in(text, "@BASE@", base);
  return text;
}

std::string torch_test(const exported_kernel& x, const std::string& import_lines) {
  auto text = filled(test_form, x);
  const auto& problem = x.what->torch;
  std::string mutates;
  for (auto i : problem.mutates) mutates += (mutates.empty() ? "" : ", ") + std::to_string(i);
  // What passed the referee's bounds, which are sharper, passes these: they guard the installation.
  double relative = problem.precision == "fp32" ? 1e-4 : 1e-2;
  double absolute = relative;
  if (problem.tolerance) {
    relative = problem.tolerance->relative;
    absolute = problem.tolerance->absolute;
  }
  put_in(text, "@IMPORT@", import_lines);
  put_in(text, "@DEVICE@", x.about.backend == "cpu" ? "cpu" : "cuda");
  put_in(text, "@TYPE@", type_of(problem.precision));
  put_in(text, "@MUTATES@", "[" + mutates + "]");
  put_in(text, "@RTOL@", fmt::format("{}", relative));
  put_in(text, "@ATOL@", fmt::format("{}", absolute));
  return text;
}

expected<out_files> torch_module(const exported_kernel& x) {
  auto name = x.name();
  return out_files{
      {name + "/__init__.py", torch_init(x)},
      {name + "/kernel.py", x.source},
      {"tests/reference.py", x.reference},
      {"tests/test_" + name + ".py", torch_test(x, "from " + name + " import " + class_of(x))},
      {"pyproject.toml",
       fmt::format("[build-system]\nrequires = [\"setuptools>=61\"]\n"
                   "build-backend = \"setuptools.build_meta\"\n\n"
                   "[project]\nname = \"{0}\"\nversion = \"0.1.0\"\ndescription = \"{1}\"\n"
                   "dependencies = [\"torch\"]\n\n[tool.setuptools]\npackages = [\"{0}\"]\n",
                   name, x.title())},
      {"README.md", readme_of_python(x)}};
}

} // namespace kernelmill::kernel_forms
