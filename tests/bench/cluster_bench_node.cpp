// A node of cluster_bench: its compilers and slots wait.

#include "tests/bench/cluster_bench.hpp"

#include <csignal>
#include <deque>
#include <filesystem>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "actors/cluster/node_gate.hpp"
#include "launch/cluster/build_id.hpp"
#include "messages/base/digest.hpp"
#include "messages/sandbox_layers.hpp"

namespace kernelmill::bench {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

Message<wire::EvaluateResult> verdict() {
  return build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
    x.setCorrect(true);
    x.setDeterministic(true);
    auto cases = x.initCases(8);
    for (unsigned i = 0; i < cases.size(); ++i) {
      cases[i].setName("case");
      cases[i].setShape("rows=64 cols=256");
      cases[i].setBound(1e-5);
      cases[i].setPass(true);
    }
    x.setSeconds(0.02);
    x.setDevice("a slot that waits");
  });
}

/// Makes libraries that no node has seen, in a folder that keeps the latest.
class library_maker {
public:
  library_maker(std::string directory, uint64_t seed, size_t bytes)
      : directory_(std::move(directory)), next_(seed << 40), bytes_(bytes / 8) {
    fs::create_directories(directory_);
  }

  Message<wire::BuildResult> make() {
    for (auto& x : bytes_) { // what no link can compress
      next_ += 0x9e3779b97f4a7c15;
      x = (next_ ^ next_ >> 30) * 0xbf58476d1ce4e5b9;
    }
    std::string_view content{reinterpret_cast<const char*>(bytes_.data()), bytes_.size() * 8};
    auto sha256 = sha256_hex(content);
    auto path = directory_ + "/" + std::to_string(count_ % kept) + ".so";
    ++count_;
    std::ofstream{path, std::ios::binary} << content;
    return build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
      x.setCompiled(true);
      x.setLibraryPath(path);
      x.setLibrarySha256(sha256);
      x.setToolchain("a compiler that waits");
      x.setSeconds(0.001);
    });
  }

private:
  static constexpr uint64_t kept = 64; // far more than are on their way
  std::string directory_;
  uint64_t next_;
  uint64_t count_ = 0;
  std::vector<uint64_t> bytes_;
};

/// Jobs that are served one after the other, each for a fixed time of waiting. As a GPU does, the
/// next one that is there begins when the one before ends, whenever our timer notices that.
template <class Result>
struct waiting_line {
  std::deque<caf::typed_response_promise<Message<Result>>> jobs;
  clock::time_point free_at;

  template <class Self>
  caf::result<Message<Result>> take(Self* self, std::chrono::milliseconds time) {
    jobs.push_back(self->template make_response_promise<Message<Result>>());
    auto now = clock::now();
    free_at = std::max(now, free_at) + time;
    self->delayed_send(self, free_at - now, atom::tick_v);
    return jobs.back();
  }

  void serve(const Message<Result>& result) {
    auto done = std::move(jobs.front());
    jobs.pop_front();
    done.deliver(result);
  }
};

using ticking_compiler = compiler_actor::extend<caf::reacts_to<atom::tick>>;
using ticking_runner = gpu_runner_actor::extend<caf::reacts_to<atom::tick>>;

struct virtual_compiler_state {
  waiting_line<wire::BuildResult> line;
  static inline const char* name = "virtual-compiler";
};

ticking_compiler::behavior_type
virtual_compiler(ticking_compiler::stateful_pointer<virtual_compiler_state> self,
                 std::shared_ptr<library_maker> maker) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
        return self->state.line.take(self, build_time);
      },
      [self, maker](atom::tick) { self->state.line.serve(maker->make()); },
  };
}

struct virtual_runner_state {
  waiting_line<wire::EvaluateResult> line;
  static inline const char* name = "virtual-runner";
};

ticking_runner::behavior_type
virtual_runner(ticking_runner::stateful_pointer<virtual_runner_state> self) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [self](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
        // A node whose files are not there would be fast for nothing.
        auto x = request.open();
        if (::access(x->getLibraryPath().cStr(), R_OK) != 0 ||
            ::access(x->getTaskDir().cStr(), R_OK) != 0)
          give_up("a job came without its files");
        return self->state.line.take(self, evaluate_time);
      },
      [](atom::cancel, const envelope&) {},
      [self, answer = verdict()](atom::tick) { self->state.line.serve(answer); },
  };
}

Message<wire::NodeOffer> offer_of(const settings& x) {
  return build<wire::NodeOffer>([&](wire::NodeOffer::Builder b) {
    b.setName("node" + std::to_string(x.number));
    b.setBuild(build_id());
    b.setEpoch(static_cast<uint64_t>(::getpid()));
    b.setBackend(lane_backend);
    b.setArchitecture(lane_architecture);
    b.setCompilers(x.slots);
    auto layers = b.initLayers(sandbox_layer_names.size()); // no candidate is run here
    for (unsigned i = 0; i < layers.size(); ++i) layers.set(i, std::string{sandbox_layer_names[i]});
    auto slots = b.initSlots(x.slots);
    for (uint32_t i = 0; i < x.slots; ++i) slots.set(i, "slot" + std::to_string(i));
  });
}

} // namespace

link_options link_of(const settings& x) {
  link_options result;
  result.insecure_loopback = x.tls != "yes";
  result.credentials = x.directory + "/credentials";
  return result;
}

[[noreturn]] void serve_node(const settings& x) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  network_address at{"127.0.0.1", x.port};
  auto tls = must(choose_link(link_of(x), at));
  cluster_config config;
  caf::actor_system system{config};
  lease_policy policy;
  policy.attempts = 1;
  auto local = system.spawn(leasing_cluster, policy);
  auto folder = x.directory + "/node" + std::to_string(x.number);
  for (uint32_t i = 0; i < x.slots; ++i) {
    auto maker = std::make_shared<library_maker>(folder + "/built" + std::to_string(i),
                                                 x.number * 1000 + i + 1, x.library_kb * 1000);
    // Credits as a node's own: launch/node/slot_actors.cpp.
    caf::anon_send(local, atom::lease_v, compiler_actor{system.spawn(virtual_compiler, maker)},
                   uint32_t{1});
    caf::anon_send(local, atom::lease_v, gpu_runner_actor{system.spawn(virtual_runner)},
                   uint32_t{2});
  }
  auto gate =
      spawn_node_gate(system, folder, local, std::make_shared<parcel_shelf>(folder + "/shelf"));
  auto head = must(reach_head(system, at, tls));
  caf::scoped_actor self{system};
  self->monitor(head);
  self->request(head, 10s, atom::join_v, offer_of(x), gate)
      .receive(
          [](const Message<wire::Welcome>& welcome) {
            if (welcome.open()->getFault().getClass() != wire::FaultClass::NONE)
              give_up(welcome.open()->getFault().getMessage().cStr());
          },
          [&](caf::error& why) { give_up(system.render(why)); });
  self->receive([](const caf::down_msg&) {});
  std::_Exit(0);
}

} // namespace kernelmill::bench
