#include "actors/lineage/store_sink.hpp"

#include <deque>

#include "messages/contents.hpp"

namespace kernelmill {

namespace {

// Replaces an artifact by its text: an episode asks for a history to go on with the conversation.
expected<void> fill_in(wire::Content::Builder content, const text_lookup& look_up) {
  if (!content.isArtifact()) return {};
  auto text = look_up(content.asReader());
  KM_TRY(text);
  content.setInline(*text);
  return {};
}

// After the completion, which may hold it.
expected<void> fill_in_candidate(wire::TurnRecord::Builder turn) {
  auto candidate = turn.getCandidate();
  if (!candidate.isOfCompletion()) return {};
  auto completion = turn.getCompletion().getText().getInline();
  auto part =
      part_of({completion.begin(), completion.size()}, candidate.asReader().getOfCompletion());
  KM_TRY(part);
  std::string text{*part};
  candidate.setInline(text);
  return {};
}

expected<void> fill_in(wire::TurnRecord::Builder turn, const text_lookup& look_up) {
  expected<void> result;
  for_each_content(turn, [&](wire::Content::Builder content, const char*) {
    if (result) result = fill_in(content, look_up);
  });
  return result ? fill_in_candidate(turn) : result;
}

} // namespace

expected<Message<wire::EpisodeHistory>>
history_of(const std::vector<Message<wire::Record>>& records, const text_lookup& look_up) {
  unsigned turns = 0;
  for (auto& record : records)
    if (record.open()->isTurn()) ++turns;
  expected<void> status;
  auto result = build<wire::EpisodeHistory>([&](wire::EpisodeHistory::Builder x) {
    auto list = x.initTurns(turns);
    unsigned i = 0;
    for (auto& record : records) {
      auto view = record.open();
      if (view->isTurn()) {
        list.setWithCaveats(i, view->getTurn());
        if (auto ok = fill_in(list[i++], look_up); !ok) status = ok;
      } else if (view->isEpisode()) {
        x.setFinished(true);
        x.setEpisode(view->getEpisode());
      }
    }
  });
  KM_TRY(status);
  return result;
}

store_sink::store_sink(std::shared_ptr<store> records, std::shared_ptr<artifact_store> artifacts)
    : records_(std::move(records)), artifacts_(std::move(artifacts)) {
  // nop
}

expected<std::vector<bool>> store_sink::commit(const std::vector<pending_record>& batch) {
  std::vector<Message<wire::Record>> records;
  std::vector<artifact> artifacts;
  std::deque<Message<wire::ArtifactBatch>::view> open; // keeps the bytes while they are written
  records.reserve(batch.size());
  for (auto& entry : batch) {
    records.push_back(entry.record);
    if (entry.artifacts.empty()) continue;
    auto& view = open.emplace_back(entry.artifacts);
    for (auto one : view->getArtifacts()) {
      auto sha256 = one.getSha256();
      auto bytes = one.getBytes();
      artifacts.push_back({{sha256.begin(), sha256.size()},
                           {reinterpret_cast<const char*>(bytes.begin()), bytes.size()}});
    }
  }
  if (!artifacts.empty()) KM_TRY(artifacts_->put_all(artifacts));
  auto fresh = records_->commit(records);
  if (fresh && follower_)
    for (size_t i = 0; i < records.size(); ++i)
      if ((*fresh)[i]) follower_->push(std::move(records[i]));
  return fresh;
}

void store_sink::on_fresh(record_follower::listener tell, std::function<void()> rest) {
  follower_ = std::make_unique<record_follower>(std::move(tell), std::move(rest));
}

void store_sink::settle() {
  if (follower_) follower_->settle();
}

expected<Message<wire::EpisodeHistory>> store_sink::read(const episode_id& episode) {
  std::vector<Message<wire::Record>> found;
  auto scanned = records_->scan_episode(episode.run, episode.group, episode.member,
                                        [&](wire::Record::Reader record) {
                                          found.push_back(copy_of<wire::Record>(record));
                                          return true;
                                        });
  KM_TRY(scanned);
  return history_of(found, [this](wire::Content::Reader x) { return artifacts_->text(x); });
}

} // namespace kernelmill
