#include "launch/commands/store/export_permits.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

cli::option_spec accept_terms_option() {
  return {"--accept-terms",
          "ID,...",
          "Terms of sources that you accept; docs/reference/licences.md lists them.",
          "",
          false,
          {},
          cli::completes::nothing};
}

expected<std::set<std::string>> accepted_terms(const cli::invocation& in,
                                               const licence_table& licences) {
  std::set<std::string> result;
  if (in.has("--accept-terms")) {
    const auto& text = in.value("--accept-terms");
    for (size_t at = 0; at <= text.size();) {
      auto comma = std::min(text.find(',', at), text.size());
      result.insert(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  KM_TRY(licences.check_terms(result));
  return result;
}

nlohmann::ordered_json refusals_json(const exports::refusals& x) {
  auto result = nlohmann::ordered_json::array();
  for (const auto& [key, r] : x)
    result.push_back(
        {{"what", r.what}, {"groups", r.groups}, {"reason", r.may.reason}, {"hint", r.may.hint}});
  return result;
}

void say_refusals(const exports::refusals& x) {
  for (const auto& [key, r] : x)
    cli::talk(fmt::format("left out {} with {}: {} ({})", counted(r.groups, "group"), r.what,
                          r.may.reason, r.may.hint));
}

} // namespace kernelmill::commands
