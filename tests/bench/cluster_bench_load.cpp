// What cluster_bench asks of the cluster.

#include <cstdlib>
#include <filesystem>

#include <caf/all.hpp>

#include "actors/lineage/store_sink.hpp"
#include "actors/run/run.hpp"
#include "tests/bench/cluster_bench.hpp"
#include "tests/bench/instant_services.hpp"

namespace kernelmill::bench {

namespace {

namespace fs = std::filesystem;

std::shared_ptr<const task> row_sum() {
  auto* root = std::getenv("KERNELMILL_SOURCE_DIR");
  auto path = std::string{root != nullptr ? root : "."} + "/configs/tasks/native/row_sum";
  auto result = must(load_task_folder(fs::absolute(path).string()));
  if (auto ok = choose_backend(result, "cpu"); !ok) give_up(render(ok.error()));
  if (auto ok = choose_contract(result, contract_kind::native); !ok) give_up(render(ok.error()));
  return std::make_shared<const task>(std::move(result));
}

struct chain_state {
  std::shared_ptr<const task> what;
  cluster_actor queues;
  uint64_t number = 0;
  static inline const char* name = "chain";
};

using chain = caf::stateful_actor<chain_state>;

void lost(chain* self, caf::error& why) {
  give_up("a job was lost: " + self->system().render(why));
}

void build_next(chain* self);

void evaluate_next(chain* self, const envelope& where, const Message<wire::BuildResult>& built) {
  auto& s = self->state;
  auto b = built.open();
  if (!b->getCompiled()) give_up(b->getFault().getMessage().cStr());
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setTaskId(s.what->id);
    x.setTaskDir(s.what->directory);
    x.setTaskDigest(s.what->digest);
    x.setCandidateSha256(b->getLibrarySha256());
    x.setLibraryPath(b->getLibraryPath());
    x.setLibrarySha256(b->getLibrarySha256());
    x.setDeadlineMs(60'000);
    x.setContract("native");
  });
  self->request(s.queues, caf::infinite, atom::evaluate_v, where, request)
      .then(
          [self](const Message<wire::EvaluateResult>& result) {
            auto x = result.open();
            if (!x->getCorrect()) give_up(x->getFault().getMessage().cStr());
            build_next(self);
          },
          [self](caf::error& why) { lost(self, why); });
}

void build_next(chain* self) {
  auto& s = self->state;
  envelope where;
  where.episode = ++s.number;
  auto request = build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
    x.setTask(s.what->id);
    x.setContract("native");
    x.setBackend("cpu");
    x.setSource(std::string(1300, 's'));
    x.setSha256(std::string(64, 'a'));
    x.setDeadlineMs(60'000);
  });
  self->request(s.queues, caf::infinite, atom::build_v, where, request)
      .then([self,
             where](const Message<wire::BuildResult>& built) { evaluate_next(self, where, built); },
            [self](caf::error& why) { lost(self, why); });
}

} // namespace

void start_stream(caf::actor_system& system, const cluster_actor& queues, uint32_t live) {
  auto what = row_sum();
  for (uint32_t i = 0; i < live; ++i)
    system.spawn([what, queues](chain* self) {
      self->state.what = what;
      self->state.queues = queues;
      build_next(self);
    });
}

/// The real thing: run, episodes, governance, and a durable store.
void start_episodes(caf::actor_system& system, const cluster_actor& queues, uint32_t live,
                    const std::string& directory) {
  auto services = instant_services(system, {});
  services->compiler = queues;
  services->runner = queues;
  services->profiler = queues;
  auto opened = must(store::open({directory + "/lineage", false, uint64_t{8} << 30, true}));
  auto sink = std::make_shared<store_sink>(std::make_shared<store>(std::move(opened)),
                                           std::make_shared<artifact_store>(directory + "/texts"));
  services->lineage = spawn_group_commit_lineage(system, sink, lineage_config{});
  run_plan plan;
  plan.name = "bench";
  plan.group_size = 8;
  plan.max_live = live;
  plan.groups.assign(100'000, row_sum()); // more than any measurement takes
  auto run = system.spawn(batch_run, std::move(plan), std::make_shared<episode_settings>(),
                          std::shared_ptr<const episode_services>{services}, nullptr);
  system.spawn([run](caf::event_based_actor* self) {
    self->request(run, caf::infinite, atom::start_v)
        .then([](const Message<wire::RunSummary>&) { give_up("the run ended"); },
              [self](caf::error& why) { give_up(self->system().render(why)); });
  });
}

} // namespace kernelmill::bench
