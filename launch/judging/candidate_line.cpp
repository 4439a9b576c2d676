#include "launch/judging/candidate_line.hpp"

#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

tl::expected<candidate_line, std::string> read_candidate_line(std::string_view text) {
  auto wrong = [](std::string cause) { return tl::unexpected<std::string>{std::move(cause)}; };
  auto x = nests_deeper(text) ? nlohmann::json{} : nlohmann::json::parse(text, nullptr, false);
  auto has = [&](const char* key) { return x.contains(key) && x[key].is_string(); };
  if (!x.is_object() || !has("task") || !has("file"))
    return wrong("expected an object with the strings task and file");
  for (const auto& [key, unused] : x.items())
    if (key != "name" && key != "task" && key != "file" && key != "contract")
      return wrong("unknown key \"" + key + "\"");
  for (const char* key : {"name", "contract"})
    if (x.contains(key) && !has(key)) return wrong(std::string{key} + " is not a string");
  auto file = x["file"].get<std::string>();
  return candidate_line{x["task"].get<std::string>(), file, x.value("name", file),
                        x.value("contract", "auto")};
}

} // namespace kernelmill
