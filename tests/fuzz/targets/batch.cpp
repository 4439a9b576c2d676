// NDJSON that people and programs write: candidates for `judge`, KernelBench's problems.

#include "launch/import/kernelbench.hpp"
#include "launch/judging/candidate_line.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

void batch(std::string_view bytes) {
  for (const auto& text : lines_of(bytes, 64)) {
    auto line = read_candidate_line(text);
    promise(line.has_value() || !line.error().empty(), "a line that is refused is told why");
    if (line) promise(!line->name.empty() || line->file.empty(), "a candidate has a name");
  }
  memory_file_path file{bytes};
  auto problems = read_kernelbench(file.path());
  check(problems);
  if (!problems) return;
  for (const auto& x : *problems) {
    operator_family_of(x);
    promise(x.id().find("..") == std::string::npos || x.name.find('/') == std::string::npos,
            "a problem's folder lies below the root");
    for (const auto& file_of_task : task_files_of(x))
      promise(!file_of_task.text.empty(), "a task's file has words");
  }
}

} // namespace kernelmill::fuzz
