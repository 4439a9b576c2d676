#include "launch/commands/view/watch_text.hpp"

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill::commands {

using json = nlohmann::ordered_json;

std::string committed_turn_text(const json& document, const json& x, bool colour) {
  auto episode = one_line(document["episode"].get<std::string>());
  auto outcome = x["outcome"].get<std::string>();
  auto paint = outcome == "accepted"   ? cli::colour::green
               : outcome == "rejected" ? cli::colour::red
                                       : cli::colour::yellow;
  auto result = fmt::format("{}.t{}  {}", episode, x["turn"].get<uint64_t>(),
                            cli::paint(colour, paint, cell(x, "category")));
  if (!x["reward"].is_null()) result += "  reward " + number_cell(x, "reward", 3);
  if (x["speedup"].is_object())
    result += fmt::format("  speedup {} [{}, {}]", number_cell(x["speedup"], "estimate"),
                          number_cell(x["speedup"], "low"), number_cell(x["speedup"], "high"));
  const auto& s = x["seconds"];
  double waited = 0;
  for (const auto& [stage, seconds] : x["waited"].items()) waited += seconds.get<double>();
  result += fmt::format("  (policy {}, build {}, evaluation {}, waiting {})",
                        seconds_cell(s, "policy"), seconds_cell(s, "build"),
                        seconds_cell(s, "evaluate"), cli::format_seconds(waited));
  for (size_t i = 0; i < x["findings"].size(); ++i) {
    auto severities = x.value("severities", json::array()); // a head of an older version has none
    result += "  " + (i < severities.size() ? one_line(severities[i].get<std::string>())
                                            : std::string{"violation"});
    result += " " + one_line(x["findings"][i].get<std::string>());
  }
  if (auto message = x["message"].get<std::string>(); !message.empty())
    result += "\n    " + one_line(message, 400);
  return result;
}

std::string streaming_text(const json& document, size_t width) {
  auto x = document.find("streaming");
  if (x == document.end() || !x->is_object()) {
    auto at = one_line(document.value("at", std::string{}));
    return width == 0 || at.empty() ? at : cli::shorten(at, width > 4 ? width - 4 : width);
  }
  auto head = fmt::format("t{} streams, {}", x->value("turn", 0),
                          cli::format_bytes(x->value("bytes", 0.0)));
  auto tail = one_line(x->value("tail", std::string{}), 4000);
  auto used = cli::columns_of(head) + 6;
  if (tail.empty() || width <= used) return head;
  // Its end is what is new.
  auto over = tail.size() - std::min(tail.size(), width - used);
  while (over < tail.size() && continues_utf8(tail[over])) ++over;
  return head + ": …" + tail.substr(over);
}

std::string ended_episode_text(const json& document) {
  const auto& end = document["end"];
  return fmt::format("{} has ended: {} after {}, {}", cell(document, "episode"),
                     cell(end, "outcome"), counted_cell(end, "turns", "turn"),
                     cell(end, "stop_reason"));
}

} // namespace kernelmill::commands
