#include "launch/server/api/kernel_api.hpp"

#include <algorithm>

#include <pthread.h>

#include "launch/cli/terminal.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::services {

namespace {

constexpr size_t most_waiting = 64;
constexpr bool always = true;

const fields& kernel_fields() {
  static const fields all{
      {"task", kind::text, "The task's id.", always},
      {"operator_family", kind::text, "", always},
      {"device", kind::text, "That it was measured on.", always},
      {"shape", kind::text, "That was timed.", always},
      {"backend", kind::text, "`cpu`, `cuda` or `hip`.", always},
      {"contract", kind::text, "`native`, `device`, `torch` or `program`.", always},
      {"language", kind::text, "`cpp`, `cuda`, `hip` or `python`.", always},
      {"baseline", kind::text, "What the speedup is over; `eager` is the task's own.", always},
      {"best_speedup_lower", kind::number, "Lower bound of the 95 % interval.", always},
      {"estimate", kind::number, "", always},
      {"high", kind::number, "Upper bound.", always},
      {"samples", kind::whole, "Timed and checked calls behind it.", always},
      {"candidate_ms", kind::number, "Median of a call.", always},
      {"reference_ms", kind::number, "The same of the baseline.", always},
      {"clock", kind::text, "", always},
      {"kernels", kind::whole, "Accepted and timed kernels that it is the best of.", always},
      {"run", kind::text, "", always},
      {"name", kind::text, "Of the run's folder.", always},
      {"turn", kind::text, "`g0.e1.t2`: what `kernelmill kernel export RUN/TURN` takes.", always},
      {"model", kind::text, "That wrote it.", always},
      {"candidate_sha256", kind::text, "Of the source.", always},
      {"source", kind::text, "Of the task; empty: not known.", always},
      {"licence", kind::text, "Of the task; empty: not known.", always},
      {"toolchain", kind::text, "That built it.", always},
      {"driver", kind::text, "Of the GPU; empty: a CPU, or not known.", always},
      {"versions", kind::object, "Compilers and frameworks, by name.", always},
      {"judged_by", kind::text, "Kernelmill's version.", always},
      {"committed_at", kind::number, "Seconds since 1970.", always},
      {"stale", kind::flag, "Whether something changed since its verdict.", always},
      {"stale_reasons", kind::list, "What.", always},
      {"not_compared", kind::list, "What this server cannot compare.", always},
      {"next", kind::text, "The command that judges a stale one again.", always}};
  return all;
}

const fields& kernels_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", always},
      {"kernels", kind::list, "The fastest of each task first.", always, false, {}, "Kernel"},
      {"unreadable", kind::list, "Runs that could not be read, with the reason.", always}};
  return all;
}

std::string query_of(const http::request& x, const char* name) {
  auto found = x.query.find(name);
  return found == x.query.end() ? std::string{} : found->second;
}

expected<std::shared_ptr<const store>> open_read_only(const run_directory& run) {
  auto from = store::open({run.store, true});
  KM_TRY(from);
  return std::make_shared<const store>(std::move(*from));
}

bool comes_first(const library::kernel& a, const library::kernel& b) {
  return a.task != b.task ? a.task < b.task : a.assured_ms() < b.assured_ms();
}

} // namespace

std::vector<schema> kernel_schemas() {
  return {{"Kernel", "A verified kernel of a run.", kernel_fields()},
          {"Kernels", "The best of each task, device, shape and baseline.", kernels_fields()}};
}

std::vector<operation> kernel_operations() {
  return {{"kernels",
           "GET",
           "/v1/kernels",
           "The best verified kernels of the runs below --kernels.",
           {{"task", kind::text, "Only kernels of this task."},
            {"operator", kind::text, "Only this family of operators, such as reduction."},
            {"gpu", kind::text, "Only devices whose name holds this, such as H200."},
            {"shape", kind::text, "Only this timed shape, such as `rows=128 cols=1024`."}},
           "",
           "Kernels",
           false,
           {404, 429, 503}}};
}

kernel_answers::kernel_answers(std::string root, library::conditions_today today)
    : root_(std::move(root)), today_(std::move(today)), thread_([this] { work(); }) {
  // nop
}

kernel_answers::~kernel_answers() {
  {
    std::lock_guard guard{mutex_};
    ends_ = true;
  }
  asked_.notify_all();
  thread_.join();
  for (auto& x : waiting_)
    x.to->answer(response_of({fault_class::infrastructure, "interrupted", "the server ends", ""}));
}

void kernel_answers::ask(http::request what, http::exchange_ptr to) {
  {
    std::lock_guard guard{mutex_};
    if (waiting_.size() < most_waiting) {
      waiting_.push_back({std::move(what), std::move(to)});
      asked_.notify_one();
      return;
    }
  }
  to->answer(response_of({fault_class::infrastructure, "queue_full",
                          "too many requests for kernels wait", "come again"}));
}

void kernel_answers::work() {
  pthread_setname_np(pthread_self(), "km-kernels");
  std::unique_lock lock{mutex_};
  while (true) {
    asked_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (!next.to->gone()) next.to->answer(answer_to(next.what));
    lock.lock();
  }
}

http::response kernel_answers::answer_to(const http::request& what) const {
  library::choice which{
      query_of(what, "task"), query_of(what, "operator"), query_of(what, "gpu"), {}};
  auto shape = query_of(what, "shape");
  if (!shape.empty())
    which.accept = [shape](wire::TurnRecord::Reader turn) {
      return turn.getFacts().getEvaluation().getTiming().getShape() == shape.c_str();
    };
  auto found = library::read_library(root_, open_read_only, std::move(which));
  std::sort(found.all.begin(), found.all.end(), comes_first);
  nlohmann::ordered_json result{{"schema_version", cli::document_version},
                                {"kernels", nlohmann::ordered_json::array()},
                                {"unreadable", nlohmann::ordered_json::array()}};
  for (const auto& x : found.all) {
    auto row = library::to_json(x);
    library::add_staleness(row, library::staleness_of(x, today_));
    result["kernels"].push_back(std::move(row));
  }
  for (const auto& x : found.unreadable)
    result["unreadable"].push_back({{"run", x.run}, {"why", x.why}});
  return json_response(200, result);
}

} // namespace kernelmill::services
