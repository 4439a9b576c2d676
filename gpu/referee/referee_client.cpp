#include "gpu/referee/referee_client.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <sys/socket.h>

#include "gpu/process/core_shares.hpp"
#include "gpu/process/machine_turn.hpp"
#include "gpu/referee/lost_beside.hpp"
#include "gpu/referee/referee_protocol.hpp"
#include "gpu/sandbox/cgroup.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/fault.hpp"
#include "messages/framing.hpp"

namespace kernelmill {

struct referee_client::state {
  spawner* processes = nullptr;
  std::string program;
  referee_options options;
  std::optional<child> process;
  descriptor socket;
  unsigned restarts = 0;

  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state();

  expected<void> start();
  void drop() {
    process.reset();
    socket.reset();
  }
  template <class Result, class Request>
  expected<Message<Result>> ask(const Message<Request>& request, uint32_t kind, uint32_t answer,
                                int deadline_ms, const std::stop_token& stop);
  expected<frame> exchange(uint32_t kind, const char* words, size_t bytes, int deadline_ms,
                           const std::stop_token& stop);
  bool was_killed(std::optional<uint64_t> kills_before, int patience_ms,
                  const std::stop_token& stop);
  expected<Message<wire::CheckResult>> check(const std::string& task_directory, int deadline_ms,
                                             const std::stop_token& stop);
  // Whether a task is judged here as it should be.
  bool checks(const std::string& task_directory, int deadline_ms, const std::stop_token& stop);
};

namespace {

// From a closed connection to the status of its process: who has a GPU's memory or gigabytes of its
// own takes seconds to end, more beside others.
constexpr int longest_end_ms = 30'000;
constexpr int end_look_ms = 100; // nobody who wants to end waits longer for that
constexpr int shortest_end_ms = 2000;
constexpr int farewell_ms = 500; // of a referee that has nothing to do

// Who asked does not wait much longer than until its deadline.
int patience_until(std::chrono::steady_clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), shortest_end_ms, longest_end_ms));
}

// Nobody waits longer for who needs a control: its time is the candidate's.
Message<wire::EvaluateRequest> shortened(wire::EvaluateRequest::Reader x,
                                         std::chrono::milliseconds by) {
  scratch_builder builder;
  builder->setRoot(x);
  auto given = x.getDeadlineMs();
  if (given > 0)
    builder->getRoot<wire::EvaluateRequest>().setDeadlineMs(
        static_cast<uint32_t>(std::max<int64_t>(1, int64_t{given} - by.count())));
  return Message<wire::EvaluateRequest>{*builder};
}

void add_cores(std::vector<std::string>& into, const char* option, const std::vector<int>& cores) {
  std::string list;
  for (int x : cores) list += (list.empty() ? "" : ",") + std::to_string(x);
  if (!list.empty()) into.insert(into.end(), {option, list});
}

// What an evaluation needs for itself.
std::vector<std::string> shared_by_others(const referee_options& x) {
  if (!x.gpu_uuid.empty()) return {x.gpu_uuid};
  std::vector<std::string> result;
  for (int core : x.cpus.empty() ? cores_of_this_process() : x.cpus)
    result.push_back("core-" + std::to_string(core));
  return result;
}

} // namespace

// One that is still there has answered all that it was asked. It ends when its socket closes, with
// its candidates and their control groups, which would stay behind one that is killed.
referee_client::state::~state() {
  socket.reset();
  if (process) [[maybe_unused]]
    auto ended = process->wait(farewell_ms);
}

expected<void> referee_client::state::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return infrastructure_error("io", std::string{"failed to make a socket pair: "} +
                                          std::strerror(errno));
  descriptor ours{ends[0]};
  descriptor theirs{ends[1]};
  process_spec spec;
  spec.argv = {program, "--pool", std::to_string(options.pool), "--cache", options.cache_directory};
  add_cores(spec.argv, "--cpus", options.cpus);
  add_cores(spec.argv, "--timed-cpus", options.timed_cpus);
  if (!options.compiler.empty())
    spec.argv.insert(spec.argv.end(), {"--compiler", options.compiler});
  if (!options.python.empty()) spec.argv.insert(spec.argv.end(), {"--python", options.python});
  if (options.python_at_once) spec.argv.emplace_back("--python-at-once");
  if (options.determinism_runs != defaults::determinism_runs)
    spec.argv.insert(spec.argv.end(),
                     {"--determinism-runs", std::to_string(options.determinism_runs)});
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  if (!options.gpu_node.empty()) {
    spec.argv.insert(spec.argv.end(), {"--gpu-node", options.gpu_node});
    bool amd = is_amd_architecture(options.architecture);
    spec.environment.push_back((amd ? "ROCR_VISIBLE_DEVICES=" : "CUDA_VISIBLE_DEVICES=") +
                               options.gpu_uuid);
    for (auto& [option, value] : std::initializer_list<std::pair<const char*, const std::string&>>{
             {"--backend", options.backend},
             {"--hip-folder", options.hip_folder},
             {"--architecture", options.architecture}})
      if (!value.empty()) spec.argv.insert(spec.argv.end(), {option, value});
    if (!options.sanitizer.empty())
      spec.argv.insert(spec.argv.end(), {"--sanitizer", options.sanitizer});
    if (!options.ncu.empty()) spec.argv.insert(spec.argv.end(), {"--ncu", options.ncu});
  }
  for (const char* name : {"CUDA_HOME", "HIP_PATH", "HIPCC", "ROCM_PATH",
                           "LD_LIBRARY_PATH"}) // where toolkit and driver are
    if (const char* value = std::getenv(name); value != nullptr && !options.gpu_node.empty())
      spec.environment.push_back(std::string{name} + "=" + value);
  for (const char* name : {"XDG_CACHE_HOME", "HOME"}) // where answers of Python are kept
    if (const char* value = std::getenv(name); value != nullptr && !options.python.empty())
      spec.environment.push_back(std::string{name} + "=" + value);
  // The one setting of the sandbox that its user makes by environment.
  if (const char* group = std::getenv("KERNELMILL_CGROUP"))
    spec.environment.push_back(std::string{"KERNELMILL_CGROUP="} + group);
  spec.descriptors = {{theirs.get(), referee_socket}};
  auto started = processes->start(spec);
  KM_TRY(started);
  process = std::move(*started);
  socket = std::move(ours);
  return {};
}

expected<frame> referee_client::state::exchange(uint32_t kind, const char* words, size_t bytes,
                                                int deadline_ms, const std::stop_token& stop) {
  if (!process || !process->running()) {
    drop();
    ++restarts;
    KM_TRY(start());
  }
  std::stop_callback hang_up{stop, [fd = socket.get()] { ::shutdown(fd, SHUT_RDWR); }};
  KM_TRY(send_frame(socket.get(), kind, words, bytes, {}, deadline_ms));
  return receive_frame(socket.get(), deadline_ms);
}

// Whether somebody else has ended the referee, or its spawner and all that it had started. A
// candidate has no process of ours in its namespace that it could kill; it could only take the
// memory, and of that the kernel keeps count.
bool referee_client::state::was_killed(std::optional<uint64_t> kills_before, int patience_ms,
                                       const std::stop_token& stop) {
  if (!process || !kills_before || kills_for_memory() != kills_before) return false;
  auto ended = process->wait(end_look_ms);
  for (int waited = 0; !ended && ended.error().category == "timeout" && waited < patience_ms &&
                       !stop.stop_requested();
       waited += end_look_ms)
    ended = process->wait(end_look_ms);
  if (!ended) return ended.error().category == "spawner_lost";
  return ended->was_ended_by_others();
}

template <class Result, class Request>
expected<Message<Result>> referee_client::state::ask(const Message<Request>& request, uint32_t kind,
                                                     uint32_t answer, int deadline_ms,
                                                     const std::stop_token& stop) {
  auto before = kills_for_memory();
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{deadline_ms};
  auto got = exchange(kind, request.data(), request.size(), deadline_ms, stop);
  if (got && got->kind == answer)
    return Message<Result>::from_bytes(got->words.begin(), got->words.size() * sizeof(capnp::word));
  bool is_late = !got && got.error().category == "timeout";
  bool killed =
      !got && !is_late && !stop.stop_requested() && was_killed(before, patience_until(until), stop);
  // Whatever it still does belongs to a request that is over.
  drop();
  if (stop.stop_requested())
    return infrastructure_error("cancelled", "the evaluation was ended: its caller is gone",
                                "nothing is lost");
  if (is_late)
    return infrastructure_error(
        "referee_timeout",
        "failed to evaluate: the referee did not answer within " + std::to_string(deadline_ms) +
            " ms and was replaced",
        "the work is tried again; if it persists, raise the evaluation's deadline");
  if (killed)
    return infrastructure_error("referee_killed",
                                "failed to evaluate: another program has killed the referee",
                                "the work is tried again with a new referee; see the system's log");
  return infrastructure_error("referee_lost",
                              "failed to evaluate: the referee ended" +
                                  (got ? std::string{} : ": " + got.error().message),
                              "the work is tried again with a new referee; `kernelmill task check` "
                              "finds a task whose reference crashes");
}

expected<referee_client> referee_client::launch(spawner& processes, const std::string& program,
                                                referee_options options) {
  auto x = std::make_unique<state>();
  x->processes = &processes;
  x->program = program;
  x->options = std::move(options);
  if (!x->options.lost) x->options.lost = std::make_shared<lost_beside>();
  KM_TRY(x->start());
  return referee_client{std::move(x)};
}

referee_client::referee_client(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}
referee_client::referee_client(referee_client&&) noexcept = default;
referee_client& referee_client::operator=(referee_client&&) noexcept = default;
referee_client::~referee_client() = default;

expected<Message<wire::CheckResult>> referee_client::state::check(const std::string& task_directory,
                                                                  int deadline_ms,
                                                                  const std::stop_token& stop) {
  auto request = build<wire::CheckRequest>(
      [&](wire::CheckRequest::Builder x) { x.setTaskDir(task_directory); });
  return ask<wire::CheckResult>(request, check_request_frame, check_result_frame, deadline_ms,
                                stop);
}

bool referee_client::state::checks(const std::string& task_directory, int deadline_ms,
                                   const std::stop_token& stop) {
  auto control = check(task_directory, deadline_ms, stop);
  return control && control->open()->getProblems().size() == 0;
}

expected<Message<wire::EvaluateResult>>
referee_client::evaluate(const Message<wire::EvaluateRequest>& request, int deadline_ms,
                         const std::stop_token& stop) {
  auto turn = machine_turn::wait_for(shared_by_others(state_->options), turn_patience, stop);
  auto view = request.open();
  std::string candidate = view->getCandidateSha256();
  auto& lost = *state_->options.lost;
  bool is_suspect = view->getLostBefore() || lost.holds(candidate);
  auto started = std::chrono::steady_clock::now();
  bool works = is_suspect && state_->checks(view->getTaskDir(), deadline_ms / 2, stop);
  auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started);
  if (taken.count() * 2 >= deadline_ms ||
      (view->getDeadlineMs() > 0 && taken.count() * 2 >= view->getDeadlineMs()))
    return infrastructure_error(
        "control_late",
        "failed to evaluate: the control before it took " + std::to_string(taken.count()) +
            " ms, which leaves too little time",
        "the work is tried again; if it persists, raise the evaluation's deadline");
  auto result = state_->ask<wire::EvaluateResult>(
      is_suspect ? shortened(*view, taken) : request, evaluate_request_frame, evaluate_result_frame,
      deadline_ms - static_cast<int>(taken.count()), stop);
  auto fault = result ? fault_of(result->open()->getFault()) : result.error();
  auto settled = lost.settled(candidate, fault, works);
  if (!result && settled.cls != fault_class::candidate) return result;
  scratch_builder builder;
  if (result) builder->setRoot(*result->open());
  auto root = builder->getRoot<wire::EvaluateResult>();
  if (settled.cls != fault.cls) set_fault(root.initFault(), settled);
  const auto& layers = state_->options.layers;
  auto list = root.initLayers(static_cast<unsigned>(layers.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, layers[i]);
  return Message<wire::EvaluateResult>{*builder};
}

expected<Message<wire::CheckResult>>
referee_client::check(const Message<wire::CheckRequest>& request, int deadline_ms) {
  return state_->check(request.open()->getTaskDir(), deadline_ms, {});
}

expected<void> referee_client::probe(int deadline_ms) {
  auto nothing = build<wire::CheckRequest>([](wire::CheckRequest::Builder) {});
  auto answer = check(nothing, deadline_ms);
  KM_TRY(answer);
  return {};
}

unsigned referee_client::restarts() const noexcept {
  return state_->restarts;
}

} // namespace kernelmill
