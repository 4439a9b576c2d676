#include "launch/node/named_baseline.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "actors/episode/turn_facts.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/python.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/source_text.hpp"
#include "messages/torch_words.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

constexpr size_t most_baseline_bytes = 256 << 10;
constexpr const char* other_baseline = "name another with evaluation.baseline (--baseline)";

std::string unreadable(const std::string& path) {
  return "failed to read the baseline " + path + ": it is not a readable file of 256 KiB at most";
}

expected<std::string> text_of_baseline(const std::string& path) {
  std::error_code code;
  std::ifstream in{path, std::ios::binary};
  if (!in || !fs::is_regular_file(path, code) || fs::file_size(path, code) > most_baseline_bytes)
    return configuration_error("missing_file", unreadable(path),
                               "name eager, compile, compile_max_autotune, best, or a source file");
  std::ostringstream text;
  text << in.rdbuf();
  return normal_source(text.str());
}

} // namespace

struct baseline_finder::compilers {
  spawner processes;
  sandbox walls;
  native_toolchain toolchain;

  compilers(spawner given, const toolchain_options& options)
      : processes(std::move(given)), walls(processes), toolchain(walls, options) {}
};

timed_beside baseline_of_word(const std::string& value) {
  timed_beside result;
  if (is_baseline_word(value) && value != "best") result.kind = value;
  return result;
}

baseline_finder::baseline_finder(baseline_wish wish, chosen_backend backend)
    : wish_(std::move(wish)), backend_(std::move(backend)),
      library_({{}, {}, {}, [this](wire::TurnRecord::Reader turn) { return accepts(turn); }}) {
  // nop
}

baseline_finder::~baseline_finder() = default;

expected<task_ptr> baseline_finder::give(task_ptr what) {
  bool is_word = is_baseline_word(wish_.wanted) && wish_.wanted != "best";
  if (is_word || what->contract == contract_kind::program) return what;
  auto known = given_.find(what->id);
  if (known == given_.end()) {
    auto found = wish_.wanted == "best" ? best_for(*what) : file_for(*what);
    KM_TRY(found);
    known = given_.emplace(what->id, std::move(*found)).first;
  }
  auto result = std::make_shared<task>(*what);
  result->terms.baseline = known->second;
  return task_ptr{std::move(result)};
}

expected<timed_beside> baseline_finder::file_for(const task& what) {
  auto source = text_of_baseline(wish_.wanted);
  KM_TRY(source);
  auto product = build(what, *source);
  if (!product && product.error().cls == fault_class::candidate)
    return configuration_error("bad_baseline",
                               "failed to build the baseline " + wish_.wanted + " for task " +
                                   what.id + ": " + product.error().message,
                               other_baseline);
  KM_TRY(product);
  timed_beside result;
  result.kind = "file";
  result.sha256 = sha256_hex(*source);
  result.note = "the baseline is " + fs::path{wish_.wanted}.filename().string() + ", " +
                result.sha256.substr(0, 12);
  result.product = std::make_shared<const std::string>(std::move(*product));
  return result;
}

// What does not build any longer, or was never there, leaves the task its own baseline.
expected<timed_beside> baseline_finder::best_for(const task& what) {
  KM_TRY(read_runs());
  timed_beside result;
  auto here = hardware_text(backend_);
  const auto* best = library_.fastest(what.id, here.substr(0, here.find(" (sm_")));
  if (best == nullptr) {
    result.note = "there is no verified kernel of this task on this hardware in " + wish_.kernels;
    return result;
  }
  auto name = fmt::format("turn {} of run {}", best->turn, best->run);
  const auto& source = sources_[best->turn_id];
  auto product = build(what, source);
  if (!product && product.error().cls == fault_class::candidate) {
    result.note = "the best kernel, " + name + ", does not build here";
    return result;
  }
  KM_TRY(product);
  result.kind = "best";
  result.sha256 = sha256_hex(source);
  result.note = fmt::format("the baseline is {}, {:.6g} ms there", name, best->candidate_ms);
  result.product = std::make_shared<const std::string>(std::move(*product));
  return result;
}

expected<std::string> baseline_finder::build(const task& what, const std::string& source) {
  if (!compilers_) {
    auto processes = spawner::launch(helper_program("kernelmill-spawner"));
    KM_TRY(processes);
    toolchain_options options;
    options.compiler = wish_.compile.compiler;
    options.cache_directory =
        wish_.compile.cache_dir.empty() ? default_build_cache() : wish_.compile.cache_dir;
    options.memory_bytes = uint64_t{wish_.compile.memory_mb} << 20;
    auto backend = backend_;
    if (what.contract == contract_kind::torch && backend.python.empty()) {
      auto python = find_python(wish_.python);
      KM_TRY(python);
      backend.python = python->path;
    }
    backend.apply(options);
    compilers_ = std::make_unique<compilers>(std::move(*processes), options);
  }
  // Device code is timed beside libraries, as the tasks' own baselines are.
  auto as_library = what;
  if (as_library.contract == contract_kind::device) as_library.contract = contract_kind::native;
  parsed_completion parsed;
  parsed.ok = true;
  parsed.kernel = source;
  auto sha256 = sha256_hex(source);
  auto limit = what.contract == contract_kind::torch ? wish_.compile.torch_deadline_ms
                                                     : wish_.compile.deadline_ms;
  auto request = build_request({as_library, parsed, sha256}, std::chrono::milliseconds{limit});
  auto built = compilers_->toolchain.build(*request.open());
  auto x = built.open();
  if (!x->getCompiled()) {
    auto cls = static_cast<fault_class>(x->getFault().getClass());
    std::string why = x->getFault().getMessage().cStr();
    return tl::unexpected<error>{error{
        cls == fault_class::none ? fault_class::candidate : cls, x->getFault().getCategory().cStr(),
        why.empty() ? std::string{x->getLog().cStr()} : why, x->getFault().getHint().cStr()}};
  }
  std::ifstream in{x->getLibraryPath().cStr(), std::ios::binary};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (!in)
    return infrastructure_error("io_error",
                                std::string{"failed to read "} + x->getLibraryPath().cStr());
  return bytes.str();
}

// A run, or a folder of runs.
expected<void> baseline_finder::read_runs() {
  if (has_read_) return {};
  has_read_ = true;
  if (wish_.kernels.empty())
    return configuration_error("config_inconsistent",
                               "failed to use evaluation.baseline=best: evaluation.best_kernels "
                               "names no run",
                               "evaluation.best_kernels=runs/NAME, or a folder of runs");
  if (open_run(wish_.kernels)) return read_run(wish_.kernels);
  auto names = list_runs(wish_.kernels);
  if (names.empty())
    return configuration_error("not_found",
                               "failed to read evaluation.best_kernels: " + wish_.kernels +
                                   " is neither a run nor a folder of runs",
                               "evaluation.best_kernels=runs/NAME");
  for (const auto& name : names) KM_TRY(read_run(wish_.kernels + "/" + name));
  return {};
}

expected<void> baseline_finder::read_run(const std::string& path) {
  auto run = open_run(path);
  KM_TRY(run);
  auto records = store::open({run->store, true});
  KM_TRY(records);
  texts_ = std::make_unique<artifact_store>(run->artifacts);
  return library_.add(*run, *records);
}

// Device code is no library that a candidate could be timed beside.
bool baseline_finder::accepts(wire::TurnRecord::Reader turn) {
  if (turn.getFacts().getBackend() != backend_.name.c_str() ||
      turn.getFacts().getContract() == "device")
    return false;
  auto source = texts_->candidate(turn);
  if (!source) return false;
  sources_[turn.getTurnId().cStr()] = std::move(*source);
  return true;
}

} // namespace kernelmill
