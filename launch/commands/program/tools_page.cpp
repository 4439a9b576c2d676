#include "launch/commands/program/tools_page.hpp"

#include <fmt/format.h>

#include "actors/episode/tools/tool_list.hpp"

namespace kernelmill::commands {

namespace {

constexpr auto head_of_page = R"(# Tools: what an agent may call

Made by `kernelmill __reference tools` from the table in `actors/episode/tools/tool_list.cpp`; a test checks that it is up to date.

With `episode.mode=tools` each answer of the policy calls tools on a graph of candidates, in order, until one is submitted. All that the
calls of one answer did is one turn, durable at once. [How an episode of tools goes](../explanation/tool-episodes.md) has the rest.

| tool | steps | what it does |
|---|---|---|
)";

std::string_view word(field_type x) {
  switch (x) {
    case field_type::text: return "text";
    case field_type::number: return "number";
    case field_type::flag: return "true or false";
  }
  return "text";
}

} // namespace

std::string tools_page() {
  std::string page{head_of_page};
  for (const auto& x : all_tools())
    page += fmt::format("| `{}` | {} | {} |\n", x.name, x.steps, x.description);
  page += "\n## Arguments\n\n| tool | argument | type | meaning |\n|---|---|---|---|\n";
  for (const auto& x : all_tools())
    for (const auto& field : x.fields) {
      std::string type{word(field.type)};
      if (!field.choices.empty()) type = fmt::format("{}", fmt::join(field.choices, ", "));
      page += fmt::format("| `{}` | `{}`{} | {} | {} |\n", x.name, field.name,
                          field.required ? "" : " (optional)", type, field.description);
    }
  return page;
}

} // namespace kernelmill::commands
