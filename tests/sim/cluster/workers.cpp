#include "tests/sim/cluster/workers.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "messages/base/digest.hpp"
#include "tests/sim/cluster/cluster.hpp"

namespace kernelmill::sim {

namespace {

constexpr uint32_t slowest_answer_ms = 2000;

std::string reply_of(std::string_view session, uint32_t turn) {
  static constexpr const char* names[] = {"malformed", "broken", "wrong", "slow", "fast"};
  auto kind =
      std::min<unsigned>(sha256(std::string{session} + "#" + std::to_string(turn))[0] % 7, 4);
  if (kind == 0) return "I would rather talk about the weather.";
  return "<think>plan</think><KERNEL>\n// " + std::string{session} + " " + std::to_string(turn) +
         " " + names[kind] + "\n</KERNEL>";
}

// SHA-256 of what is parsed out of reply_of(); empty where that holds no candidate.
std::string candidate_of(std::string_view session, uint32_t turn) {
  auto text = reply_of(session, turn);
  auto from = text.find("// "), to = text.find("\n</KERNEL>");
  return from == text.npos ? std::string{} : sha256_hex(text.substr(from, to - from));
}

bool says(std::string_view source, std::string_view word) {
  return source.find(word) != std::string_view::npos;
}

template <class T>
Message<T> machine_fault(const char* category) {
  return build<T>([&](typename T::Builder x) {
    auto fault = x.initFault();
    fault.setClass(wire::FaultClass::INFRASTRUCTURE);
    fault.setCategory(category);
  });
}

// Answers after a time that the seed says, or never where `value` is nothing.
template <class T, class Self>
caf::typed_response_promise<Message<T>> later(Self* self, machine& on,
                                              std::optional<Message<T>> value,
                                              std::optional<uint32_t> delay_ms = {}) {
  auto promise = self->template make_response_promise<Message<T>>();
  milliseconds delay{delay_ms ? *delay_ms : 1 + on.upto(slowest_answer_ms)};
  if (!value) delay = std::chrono::hours{1000}; // a promise that is dropped would say so
  on.after(delay, [promise, value]() mutable {
    if (value) promise.deliver(*value);
  });
  return promise;
}

template <class T, class Self>
caf::result<Message<T>> work(Self* self, machine& on, uint32_t node, Message<T> value) {
  if (on.on(fault_kind::worker_dies, node)) {
    on.mark("a worker dies with its job");
    self->quit(caf::exit_reason::kill);
    return later<T>(self, on, std::nullopt);
  }
  if (on.on(fault_kind::worker_silent, node)) {
    on.mark("a worker takes a job and never answers");
    return later<T>(self, on, std::nullopt);
  }
  if (on.on(fault_kind::worker_faulty, node)) value = machine_fault<T>("worker_fault");
  return later<T>(self, on, std::move(value));
}

Message<wire::BuildResult> built(wire::BuildRequest::Reader request, const std::string& folder) {
  std::string source = request.getSource().cStr();
  bool broken = says(source, "broken");
  auto digest = sha256_hex(source);
  auto path = folder + "/" + digest;
  if (std::error_code code; !broken && !std::filesystem::exists(path, code))
    std::ofstream{path} << source;
  return build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
    x.setCompiled(!broken);
    if (!broken) {
      x.setLibraryPath(path);
      x.setLibrarySha256(digest);
      return;
    }
    auto fault = x.initFault();
    fault.setClass(wire::FaultClass::CANDIDATE);
    fault.setCategory("compile_error");
  });
}

Message<wire::EvaluateResult> evaluated(wire::EvaluateRequest::Reader request) {
  std::ostringstream text;
  text << std::ifstream{request.getLibraryPath().cStr()}.rdbuf();
  auto source = text.str();
  // As the referee does with a library that is not what was built.
  if (sha256_hex(source) != request.getLibrarySha256())
    return machine_fault<wire::EvaluateResult>("library_lost");
  bool wrong = says(source, "wrong");
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    x.setCorrect(!wrong);
    x.setDeterministic(true);
    auto cases = x.initCases(1);
    cases[0].setName("small");
    cases[0].setPass(!wrong);
    if (wrong) {
      auto fault = x.initFault();
      fault.setClass(wire::FaultClass::CANDIDATE);
      fault.setCategory("wrong_result");
      return;
    }
    auto timing = x.initTiming();
    timing.setMeasured(true);
    double speedup = says(source, "fast") ? 2.0 : 0.8;
    timing.getSpeedup().setEstimate(speedup);
    timing.getSpeedup().setLow(speedup * 0.98);
    timing.getSpeedup().setHigh(speedup * 1.02);
  });
}

policy_client_actor::behavior_type policy(policy_client_actor::pointer self, machine* on,
                                          uint32_t number) {
  return {
      [on, number](atom::status) {
        return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
          x.setActor("policy_client");
          x.setState(on->on(fault_kind::server_down, number) ? "open" : "closed");
        });
      },
      [=](atom::complete, const envelope&, const Message<wire::CompletionRequest>& request)
          -> caf::result<Message<wire::CompletionResult>> {
        using result = wire::CompletionResult;
        auto view = request.open();
        if (on->is(defect::lost_answer) && view->getTurn() == 2 &&
            std::string_view{view->getSession().cStr()}.starts_with(run_names[1]))
          return later<result>(self, *on, std::nullopt);
        if (on->on(fault_kind::server_down, number))
          return later<result>(self, *on, machine_fault<result>("policy_unreachable"), 10);
        if (on->on(fault_kind::server_faulty, number))
          return later<result>(self, *on, machine_fault<result>("policy_down"));
        if (on->on(fault_kind::server_silent, number)) {
          on->mark("a policy server takes a request and never answers");
          return later<result>(self, *on, machine_fault<result>("policy_timeout"),
                               view->getDeadlineMs());
        }
        std::string session = view->getSession();
        auto& other = on->other_session(session);
        if (on->on(fault_kind::server_lying, number) && other != session) {
          on->mark("a policy server answers what was not asked");
          session = other;
          on->lies.insert(candidate_of(session, view->getTurn()));
        }
        auto text = reply_of(session, view->getTurn());
        return later<result>(self, *on, build<result>([&](auto x) { x.setText(text); }));
      },
  };
}

compiler_actor::behavior_type compiler(compiler_actor::pointer self, machine* on, uint32_t node,
                                       std::string folder) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::build, const envelope&, const Message<wire::BuildRequest>& request) {
        return work(self, *on, node, built(*request.open(), folder));
      },
  };
}

gpu_runner_actor::behavior_type runner(gpu_runner_actor::pointer self, machine* on, uint32_t node) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
        return work(self, *on, node, evaluated(*request.open()));
      },
      [](atom::cancel, const envelope&) {},
  };
}

} // namespace

policy_client_actor spawn_policy(machine& on, uint32_t number) {
  return on.keep(policy_client_actor{on.system().spawn(policy, &on, number)});
}

compiler_actor spawn_compiler(machine& on, uint32_t node, const std::string& folder) {
  return on.keep(compiler_actor{on.system().spawn(compiler, &on, node, folder)});
}

gpu_runner_actor spawn_runner(machine& on, uint32_t node) {
  return on.keep(gpu_runner_actor{on.system().spawn(runner, &on, node)});
}

} // namespace kernelmill::sim
