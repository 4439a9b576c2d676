// KernelBench's eval_results.json and timing files, which other programs wrote.

#include "launch/analysis/report/eval_results.hpp"
#include "messages/base/json_value.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

void eval_results(std::string_view bytes) {
  memory_file_path file{bytes};
  auto times = reporting::read_baseline_times(file.path());
  check(times);
  for (auto level : {std::optional<uint32_t>{}, std::optional<uint32_t>{1}}) {
    auto samples = reporting::read_eval_results({file.path(), level, times ? &*times : nullptr});
    check(samples);
    if (!samples || !level) continue;
    auto written = reporting::eval_results(samples->samples, *level)
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    memory_file_path copy{written};
    auto again = reporting::read_eval_results({copy.path(), level, nullptr});
    promise(again.has_value(), "a file that we wrote can be read");
    promise(reporting::eval_results(again->samples, *level).size() <= samples->samples.size(),
            "nothing is made up");
  }
}

} // namespace kernelmill::fuzz
