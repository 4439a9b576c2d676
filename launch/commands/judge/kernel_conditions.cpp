#include "launch/commands/judge/kernel_conditions.hpp"

#include <algorithm>
#include <map>

#include "launch/cluster/build_id.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/config/paths.hpp"
#include "launch/judging/conditions.hpp"
#include "launch/machine/python.hpp"

namespace kernelmill::commands {

expected<std::vector<library::staleness>> staleness_of_all(const std::vector<library::kernel>& all,
                                                           const cli::invocation& in) {
  auto tasks = digests_of_tasks(default_tasks_roots(), all);
  std::map<std::string, library::conditions_today> today; // by backend
  std::vector<library::staleness> result;
  for (const auto& x : all) {
    auto known = today.find(x.backend);
    if (known == today.end()) {
      library::conditions_today now;
      now.program = build_id();
      now.tasks = tasks;
      if (auto backend = choose_backend(x.backend)) {
        // Asking Python for torch takes seconds: only where a kernel needs it.
        bool needs_torch = std::any_of(all.begin(), all.end(), [&](const auto& y) {
          return y.backend == x.backend && y.versions.contains("torch");
        });
        std::string python;
        if (auto found = needs_torch ? find_python(in.value("--python"))
                                     : expected<found_python>{tl::unexpected<error>{error{}}})
          python = found->path;
        auto bench = workbench::open(*backend);
        KM_TRY(bench);
        now = conditions_of(*backend, bench->toolchain().identity(), python, build_id(), tasks);
      }
      known = today.emplace(x.backend, std::move(now)).first;
    }
    result.push_back(library::staleness_of(x, known->second));
  }
  return result;
}

} // namespace kernelmill::commands
