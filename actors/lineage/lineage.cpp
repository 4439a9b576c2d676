#include "actors/lineage/lineage.hpp"

#include <deque>

#include <caf/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/snapshots.hpp"
#include "actors/worker_thread.hpp"

namespace kernelmill {

/// One transaction on its way to the sink and back; stays in this process.
struct commit_batch {
  std::vector<pending_record> records;
  std::vector<bool> fresh;
};
using commit_batch_ptr = std::shared_ptr<commit_batch>;

} // namespace kernelmill

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::commit_batch_ptr)

namespace kernelmill {

namespace {

using committer_actor = caf::typed_actor<
    // Writes the batch and fills in which records were new.
    caf::replies_to<atom::flush, commit_batch_ptr>::with<atom::flush>>;

committer_actor::behavior_type committer(committer_actor::pointer self,
                                         std::shared_ptr<record_sink> sink) {
  (void)self;
  return {
      [sink](atom::flush, const commit_batch_ptr& batch) -> caf::result<atom::flush> {
        auto fresh = sink->commit(batch->records);
        if (!fresh) return to_caf(fresh.error());
        batch->fresh = std::move(*fresh);
        return atom::flush_v;
      },
  };
}

} // namespace

struct group_commit_lineage_state {
  using promise = caf::typed_response_promise<bool>;

  struct waiting {
    pending_record what;
    promise answer;
  };

  lineage_actor::pointer self = nullptr;
  lineage_config config;
  std::shared_ptr<record_sink> sink;
  committer_actor writer;
  worker_thread_actor reader; // a history is decompressed on its thread
  std::deque<waiting> queue;
  bool committing = false;
  uint64_t committed = 0, duplicates = 0, transactions = 0, failures = 0;

  static inline const char* name = "group-commit-lineage";

  void flush();
  void settle(const commit_batch_ptr& batch, std::vector<promise>& answers);
  Message<wire::Snapshot> snapshot() const;
};

void group_commit_lineage_state::flush() {
  if (committing || queue.empty()) return;
  auto count = std::min(queue.size(), config.batch_records);
  auto batch = std::make_shared<commit_batch>();
  auto answers = std::make_shared<std::vector<promise>>();
  batch->records.reserve(count);
  answers->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    batch->records.push_back(std::move(queue.front().what));
    answers->push_back(std::move(queue.front().answer));
    queue.pop_front();
  }
  committing = true;
  self->request(writer, config.sink_deadline, atom::flush_v, batch)
      .then(
          [this, batch, answers](atom::flush) {
            settle(batch, *answers);
            committing = false;
            flush();
          },
          [this, answers](caf::error& why) {
            ++failures;
            for (auto& answer : *answers) answer.deliver(why);
            committing = false;
            flush();
          });
}

void group_commit_lineage_state::settle(const commit_batch_ptr& batch,
                                        std::vector<promise>& answers) {
  ++transactions;
  for (size_t i = 0; i < answers.size(); ++i) {
    bool fresh = batch->fresh[i];
    ++(fresh ? committed : duplicates);
    answers[i].deliver(fresh);
  }
}

Message<wire::Snapshot> group_commit_lineage_state::snapshot() const {
  return snapshot_of("lineage", {}, committing ? "committing" : "idle", {},
                     {{"records_committed", committed},
                      {"duplicates", duplicates},
                      {"transactions", transactions},
                      {"failures", failures},
                      {"waiting", queue.size()}});
}

namespace {

lineage_actor::behavior_type
group_commit_lineage(lineage_actor::stateful_pointer<group_commit_lineage_state> self,
                     std::shared_ptr<record_sink> sink, lineage_config config) {
  auto& state = self->state;
  state.self = self;
  state.config = config;
  state.sink = sink;
  state.writer = config.own_thread
                     ? self->spawn<caf::detached + caf::linked>(committer, std::move(sink))
                     : self->spawn<caf::linked>(committer, std::move(sink));
  state.reader = spawn_worker_thread(self, config.own_thread);
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::commit, const envelope&, const Message<wire::Record>& record,
             const Message<wire::ArtifactBatch>& artifacts) -> caf::result<bool> {
        auto& s = self->state;
        auto answer = self->make_response_promise<bool>();
        s.queue.push_back({{record, artifacts}, answer});
        s.flush();
        return answer;
      },
      [self](atom::read,
             const Message<wire::ReadQuery>& query) -> caf::result<Message<wire::EpisodeHistory>> {
        auto answer = self->make_response_promise<Message<wire::EpisodeHistory>>();
        auto view = query.open();
        episode_id what{view->getRun().cStr(), {}, view->getGroup(), view->getMember()};
        auto& s = self->state;
        run_on_worker_thread(
            self, s.reader, s.config.sink_deadline,
            [sink = s.sink, what] { return sink->read(what); },
            [answer](expected<Message<wire::EpisodeHistory>> history) mutable {
              if (history)
                answer.deliver(std::move(*history));
              else
                answer.deliver(to_caf(history.error()));
            });
        return answer;
      },
  };
}

} // namespace

lineage_actor spawn_group_commit_lineage(caf::actor_system& system,
                                         std::shared_ptr<record_sink> sink, lineage_config config) {
  return system.spawn(group_commit_lineage, std::move(sink), config);
}

} // namespace kernelmill
