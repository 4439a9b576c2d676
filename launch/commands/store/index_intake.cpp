#include "launch/commands/store/index_intake.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "launch/commands/options.hpp"
#include "launch/import/kernelbench.hpp"
#include "messages/base/text.hpp"
#include "retrieval/corpora/distinct_kernels.hpp"
#include "retrieval/search/entry_drafts.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::commands {

namespace {

tl::unexpected<error> bad_option(const char* name, const std::string& text, const char* wanted) {
  return configuration_error("usage",
                             fmt::format("failed to read {}: '{}' is not {}", name, text, wanted));
}

expected<std::set<uint32_t>> levels_in(const std::string& text) {
  std::set<uint32_t> result;
  for (const auto& word : split(text, ',')) {
    uint32_t level = 0;
    auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), level);
    if (fault != std::errc{} || end != word.data() + word.size() || level == 0)
      return bad_option("--levels", text, "a list such as 1,2");
    result.insert(level);
  }
  return result;
}

std::string family_of(const kernel_example& x) {
  auto level = kernelbench_level(x.task);
  if (!x.operator_family.empty() || level == 0) return x.operator_family;
  return operator_family_of({level, 0, x.task.substr(x.task.rfind('/') + 1), {}, {}});
}

} // namespace

std::vector<cli::option_spec> kernel_filter_options() {
  return {{"--language",
           "NAME",
           "Only kernels written in it.",
           "",
           false,
           {"cpp", "cuda", "hip", "triton", "python"},
           nothing},
          {"--levels",
           "N,...",
           "Of kernels that solve problems of KernelBench: only of these levels.",
           "",
           false,
           {},
           nothing},
          flag("--with-failures", "Takes kernels, too, that their corpus found wrong."),
          {"--min-speedup",
           "X",
           "Only kernels that were measured to be so many times as fast as their baseline.",
           "",
           false,
           {},
           nothing},
          {"--written-by",
           "MODEL",
           "Of runs: only kernels that this model wrote.",
           "",
           false,
           {},
           nothing},
          {"--limit", "N", "Kernels of each source. 0: all.", "0", false, {}, nothing}};
}

expected<kernel_filter> kernel_filter_of(const cli::invocation& in) {
  kernel_filter result;
  if (in.has("--language")) result.language = in.value("--language");
  if (in.has("--levels")) {
    auto levels = levels_in(in.value("--levels"));
    KM_TRY(levels);
    result.levels = std::move(*levels);
  }
  result.with_failures = in.has("--with-failures");
  if (in.has("--min-speedup")) {
    const auto& text = in.value("--min-speedup");
    char* end = nullptr;
    result.min_speedup = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !std::isfinite(result.min_speedup) || result.min_speedup <= 0)
      return bad_option("--min-speedup", text, "a number above 0");
  }
  if (in.has("--written-by")) result.model = in.value("--written-by");
  auto limit = in.integer("--limit", 0, std::numeric_limits<int64_t>::max());
  KM_TRY(limit);
  result.limit = static_cast<uint64_t>(*limit);
  return result;
}

source_report& kernel_intake::begin(const std::string& from) {
  refused_.reset();
  return reports_.emplace_back(source_report{from, 0, 0, {}});
}

void kernel_intake::leave_out(const std::string& key, const std::string& reason) {
  auto& x = reports_.back().without[key];
  if (x.rows++ == 0) x.reason = reason;
}

/// Empty: it is wanted.
std::string kernel_intake::unwanted(const corpus_kernel& x) const {
  if (x.correct == false && !filter_.with_failures)
    return "found wrong by their corpus (--with-failures takes them)";
  if (!filter_.language.empty() &&
      written_in(x.kernel.source, x.kernel.language) != filter_.language)
    return "not written in " + filter_.language;
  auto level = kernelbench_level(x.kernel.task);
  if (!filter_.levels.empty() && level > 0 && !filter_.levels.contains(level))
    return "of other levels";
  if (x.kernel.speedup < filter_.min_speedup)
    return fmt::format("not measured to be {} times as fast", filter_.min_speedup);
  if (!filter_.model.empty() && !x.model.empty() && x.model != filter_.model)
    return "written by other models";
  return {};
}

std::optional<licence_refusal> kernel_intake::decided(const kernel_example& x) const {
  std::vector<std::string> names = {x.id};
  if (!x.task.empty()) names.push_back(x.task);
  for (const auto& name : names) {
    auto may = decide(licences_, {name, {}, x.rights_source}, purpose::train, accepted_);
    if (may.allowed) continue;
    if (x.rights_source.empty() && may.source.empty())
      return licence_refusal{"licence", "their rows do not say whose they are",
                             R"(name a source of docs/reference/licences.md in their column )"
                             R"("source", or "own" for your own work)"};
    if (!x.rights_source.empty() && !licences_.find(x.rights_source))
      return licence_refusal{
          "licence of " + x.rights_source,
          fmt::format("their source \"{}\" has no file of licences", x.rights_source),
          fmt::format("name a source of docs/reference/licences.md in their column \"source\" "
                      "(\"own\": your own work), or describe it in "
                      "~/.local/share/kernelmill/licences/{}.json",
                      x.rights_source)};
    return licence_refusal{"licence of " + may.source, may.reason, may.hint};
  }
  return std::nullopt;
}

std::optional<licence_refusal> kernel_intake::refusal_of(const kernel_example& x) {
  auto [at, isnew] = decisions_.try_emplace(x.rights_source + '\n' + x.task);
  if (isnew) at->second = decided(x);
  return at->second;
}

bool kernel_intake::take(corpus_kernel x, const std::optional<licence_refusal>& refused) {
  auto& report = reports_.back();
  if (auto why = unwanted(x); !why.empty()) {
    leave_out(why, why);
  } else if (refused) {
    if (!refused_) refused_ = refused;
    leave_out(refused->key, refused->reason + " (" + refused->hint + ")");
  } else if (!x.kernel.is_shown() || exports::split_of(x.kernel.task, x.kernel.split) == "dev") {
    leave_out("dev " + x.kernel.task, x.kernel.task + ": its task is held out (dev)");
  } else {
    x.kernel.operator_family = family_of(x.kernel);
    auto& id = x.kernel.id;
    const auto own = id;
    for (unsigned i = 2; !ids_.insert(id).second; ++i) id = fmt::format("{}-{}", own, i);
    kernels_.push_back(std::move(x.kernel));
    sources_.push_back(reports_.size() - 1);
    ++report.kept;
  }
  return filter_.limit == 0 || report.kept < filter_.limit;
}

expected<void> kernel_intake::end() const {
  if (!refused_ || reports_.back().kept > 0) return {};
  return configuration_error(
      "licence_forbids",
      fmt::format("failed to index {}: {}", reports_.back().from, refused_->reason),
      refused_->hint);
}

std::vector<kernel_example> kernel_intake::kernels() {
  auto repeated = repeated_kernels(kernels_);
  std::vector<kernel_example> result;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (!repeated[i]) {
      result.push_back(std::move(kernels_[i]));
      continue;
    }
    auto& report = reports_[sources_[i]];
    --report.kept;
    auto& x = report.without["repeated"];
    ++x.rows;
    x.reason = "they repeat a kernel that is as fast or faster";
  }
  kernels_.clear();
  return result;
}

} // namespace kernelmill::commands
