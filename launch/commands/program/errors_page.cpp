#include "launch/commands/program/errors_page.hpp"

#include <fmt/format.h>

#include "messages/categories.hpp"

namespace kernelmill::commands {

namespace {

constexpr auto opening = R"(# Errors: every category

Made by `kernelmill __reference errors` from the tables in `messages/categories.cpp` and beside it; a test checks that it is up to date,
and another that it has every category of the sources.

An error has a class, a category, a message and often a hint. The class names the party at fault and decides what follows:

| class | at fault | what follows |
|---|---|---|
| `candidate` | the kernel | a normal result: it is judged, rewarded, and reported to the policy |
| `policy` | the completion | the same |
| `configuration` | the user | the run stops with exit code 2 and a message that names key, file or line |
| `infrastructure` | this system or its machine | it is retried. If it persists, the turn is marked and gets no reward |

Messages read "failed to do something: cause"; hints name the next step.
)";

void add_categories(std::string& page, const std::string& title, fault_class cls) {
  page += fmt::format("\n{}\n| category | meaning | next step |\n|---|---|---|\n", title);
  for (const auto& x : categories_of(cls))
    page += fmt::format("| `{}` | {} | {} |\n", x.name, x.meaning, x.next);
}

void add_class(std::string& page, fault_class cls) {
  add_categories(page, fmt::format("## Class {}", to_string(cls)), cls);
}

} // namespace

std::string errors_page() {
  std::string page{opening};
  add_categories(page, "## Categories of a verdict that are no error", fault_class::none);
  add_class(page, fault_class::policy);
  add_class(page, fault_class::candidate);
  page += "\n### Rules of findings\n| rule | severity | meaning |\n|---|---|---|\n";
  for (const auto& x : finding_rules())
    page += fmt::format("| `{}` | {} | {} |\n", x.name, x.severity, x.meaning);
  add_class(page, fault_class::configuration);
  add_class(page, fault_class::infrastructure);
  return page;
}

} // namespace kernelmill::commands
