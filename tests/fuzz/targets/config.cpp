// Configuration: a file, the command line's overrides, the environment.

#include "launch/config/address.hpp"
#include "launch/config/json_text.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/load.hpp"
#include "messages/base/json_value.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

void check_report(const config_report& x) {
  for (const auto& problem : x.problems) {
    check_error(problem);
    promise(problem.hint.find("report this as a defect") == std::string::npos,
            "no text of a user is a defect of ours");
  }
  if (!x.problems.empty()) return;
  // What is written down for a run reads back as the same run.
  auto text = to_json(x.resolved.config).dump();
  memory_file_path file{text};
  auto again = examine_config({{file.path()}, {}, {}, "/"});
  promise(again.problems.empty(), "a written configuration can be read");
  promise(config_digest(again.resolved.config) == config_digest(x.resolved.config),
          "a written configuration is the same one");
}

} // namespace

void config(std::string_view bytes) {
  memory_file_path file{bytes};
  check_report(examine_config({{file.path()}, {}, {}, "/"}));
  auto lines = lines_of(bytes, 4);
  std::vector<std::pair<std::string, std::string>> environment;
  for (const auto& line : lines) {
    is_override(line);
    check(parse_address(line, 1));
    if (auto equals = line.find('='); equals != line.npos)
      environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  check_report(examine_config({{}, environment, lines, "/"}));
}

} // namespace kernelmill::fuzz
