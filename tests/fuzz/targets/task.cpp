// task.json and the files beside it, which come from suites and other people; knowledge cards.

#include <filesystem>

#include "gpu/task/task.hpp"
#include "retrieval/corpora/knowledge.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

// A folder with every other file that a task may have; only task.json changes.
const std::string& task_folder() {
  static const std::string folder = [] {
    auto path = scratch_folder() + "/native/row_sum";
    std::filesystem::create_directories(path);
    for (const auto* name : {"prompt.md", "reference.cpp", "baseline.cpp", "starter.cpp",
                             "reference.cu", "baseline.cu", "starter.cu", "starter.hip"})
      write_file(path + "/" + name, "x\n");
    write_file(path + "/problem.py", "class Model: pass\ndef get_inputs(): pass\n"
                                     "def get_init_inputs(): pass\n");
    return path;
  }();
  return folder;
}

void use(const kernelmill::task& x) {
  x.declaration();
  x.reference_declaration();
  for (const auto* backend : {"cpu", "cuda", "hip"}) {
    judging_terms terms;
    terms.backend = backend;
    auto here = on_terms(x, terms);
    if (!here) continue;
    for (auto contract : {contract_kind::native, contract_kind::device, contract_kind::torch}) {
      terms.contract = contract;
      check(on_terms(x, terms));
    }
    for (const auto& arg : (*here)->arguments)
      for (const auto& dimension : arg.shape) {
        auto size = dimension.evaluate((*here)->timed.scalars);
        promise(size.has_value() && *size >= 1, "the shape of a task that is taken is one");
      }
  }
}

} // namespace

void task(std::string_view bytes) {
  write_file(task_folder() + "/task.json", bytes);
  auto loaded = load_task_folder(task_folder());
  check(loaded);
  if (loaded) use(**loaded);
  check(parse_card(bytes, "card.md"));
  missing_of_problem(std::string{bytes});
}

} // namespace kernelmill::fuzz
