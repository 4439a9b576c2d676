#include "launch/commands/store/index_sources.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "launch/commands/options.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::commands {

namespace {

constexpr std::array kinds_of_source = {"cards", "kernelbook", "ndjson", "run", "sakana"};

corpus_shape shape_of(const std::string& kind) {
  if (kind == "kernelbook") return corpus_shape::kernelbook;
  return kind == "sakana" ? corpus_shape::sakana : corpus_shape::ndjson;
}

const char* columns_of(const std::string& kind) {
  if (kind == "kernelbook") return "rows of KernelBook have python_code and triton_code";
  if (kind == "sakana")
    return "rows of the AI CUDA Engineer Archive have PyTorch_Code_Module, CUDA_Code and Correct";
  return "rows have a column `kernel`; docs/how-to/show-examples.md lists the others";
}

} // namespace

cli::option_spec from_option() {
  cli::option_spec result = {
      "--from", "KIND=WHERE", "What the index is made of. Default: cards.", "", false, {}, nothing};
  result.repeat = true;
  return result;
}

expected<std::vector<index_source>> sources_of(const cli::invocation& in) {
  if (!in.has("--from")) return std::vector<index_source>{{"cards", {}, "cards"}};
  std::vector<index_source> result;
  for (const auto& text : in.list("--from")) {
    auto mark = text.find('=');
    index_source x{text.substr(0, mark), mark == text.npos ? "" : text.substr(mark + 1), text};
    if (std::find(kinds_of_source.begin(), kinds_of_source.end(), x.kind) == kinds_of_source.end())
      return configuration_error(
          "usage", fmt::format("failed to read --from {}: '{}' is no kind of source", text, x.kind),
          "there are: " + joined(kinds_of_source));
    if (x.kind != "cards" && x.value.empty())
      return configuration_error(
          "usage",
          fmt::format("failed to read --from {}: it names no {}", text,
                      x.kind == "run" ? "run" : "file"),
          fmt::format("--from {}={}", x.kind, x.kind == "run" ? "RUN" : "FILE"));
    if (x.kind == "cards" && std::any_of(result.begin(), result.end(),
                                         [](const auto& one) { return one.kind == "cards"; }))
      return configuration_error("usage",
                                 "failed to read --from: an index has the cards of one folder");
    result.push_back(std::move(x));
  }
  return result;
}

expected<void> take_corpus(kernel_intake& to, const index_source& from) {
  auto& report = to.begin(from.from);
  std::string first; // malformed row
  uint64_t malformed = 0;
  auto read = each_row(from.value, [&](const file_row& row) {
    ++report.rows;
    auto kernel = kernel_of_row(shape_of(from.kind), row);
    if (!kernel) {
      auto what = fmt::format("{}:{}: {}", from.value, row.line, kernel.error());
      if (malformed++ == 0) first = what;
      to.leave_out("malformed", "malformed, the first is " + what);
      return true;
    }
    auto refused = to.refusal_of(kernel->kernel);
    return to.take(std::move(*kernel), refused);
  });
  KM_TRY(read);
  if (report.rows == 0)
    return configuration_error("malformed_corpus",
                               fmt::format("failed to read {}: it has no row", from.value),
                               columns_of(from.kind));
  if (malformed == report.rows)
    return configuration_error(
        "malformed_corpus",
        report.rows == 1
            ? fmt::format("failed to read {}: its only row cannot be used", first)
            : fmt::format("failed to read {}: none of its {} rows can be used", first, report.rows),
        columns_of(from.kind));
  return to.end();
}

} // namespace kernelmill::commands
