#include "actors/lineage/record_sinks.hpp"

#include <cstdio>
#include <deque>
#include <functional>

namespace kernelmill {

namespace {

using text_lookup = std::function<expected<std::string>(wire::Content::Reader)>;

// Replaces an artifact by its text: who asks for a history wants to go on with the conversation.
expected<void> fill_in(wire::Content::Builder content, const text_lookup& look_up) {
  if (content.isInline()) return {};
  auto text = look_up(content.asReader());
  KM_TRY(text);
  content.setInline(*text);
  return {};
}

expected<void> fill_in(wire::TurnRecord::Builder turn, const text_lookup& look_up) {
  for (auto part : turn.getPrompt())
    if (auto ok = fill_in(part.getContent(), look_up); !ok) return ok;
  if (auto ok = fill_in(turn.getCompletion().getText(), look_up); !ok) return ok;
  if (auto ok = fill_in(turn.getCandidate(), look_up); !ok) return ok;
  return fill_in(turn.getFeedback(), look_up);
}

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

} // namespace

// -- store_sink -----------------------------------------------------------------------------------

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
  if (fresh && tell_)
    for (size_t i = 0; i < records.size(); ++i)
      if ((*fresh)[i]) tell_(*records[i].open());
  return fresh;
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

// -- memory_sink ----------------------------------------------------------------------------------

std::string record_key(wire::Record::Reader record) {
  auto numbers = [](const char* kind, capnp::Text::Reader run, uint32_t group, uint32_t member,
                    uint32_t turn) {
    char text[64];
    std::snprintf(text, sizeof text, "/%08x/%08x/%08x", group, member, turn);
    return std::string{kind} + "/" + run.cStr() + text;
  };
  switch (record.which()) {
    case wire::Record::TURN: {
      auto x = record.getTurn();
      auto e = x.getEpisode();
      return numbers("episode", e.getRun(), e.getGroup(), e.getMember(), x.getTurn());
    }
    case wire::Record::EPISODE: {
      auto e = record.getEpisode().getEpisode();
      return numbers("episode", e.getRun(), e.getGroup(), e.getMember(), UINT32_MAX);
    }
    case wire::Record::GROUP:
      return numbers("group", record.getGroup().getRun(), record.getGroup().getGroup(), 0, 0);
    case wire::Record::RUN: {
      auto x = record.getRun();
      return numbers("run", x.getRun(), x.getState() != "running", 0, x.getOpening());
    }
  }
  return {};
}

expected<std::vector<bool>> memory_sink::commit(const std::vector<pending_record>& batch) {
  std::vector<bool> fresh(batch.size(), true);
  if (!keep_) return fresh;
  std::lock_guard guard{mutex_};
  for (size_t i = 0; i < batch.size(); ++i) {
    auto artifacts = batch[i].artifacts.open();
    for (auto one : artifacts->getArtifacts()) {
      auto bytes = one.getBytes();
      artifacts_.try_emplace(one.getSha256().cStr(), reinterpret_cast<const char*>(bytes.begin()),
                             bytes.size());
    }
    fresh[i] = records_.try_emplace(record_key(*batch[i].record.open()), batch[i].record).second;
  }
  return fresh;
}

expected<Message<wire::EpisodeHistory>> memory_sink::read(const episode_id& episode) {
  std::lock_guard guard{mutex_};
  std::vector<Message<wire::Record>> found;
  for (auto& [key, record] : records_) {
    if (!key.starts_with("episode/" + episode.run + "/")) continue;
    auto view = record.open();
    auto ref = view->isTurn() ? view->getTurn().getEpisode() : view->getEpisode().getEpisode();
    if (ref.getGroup() == episode.group && ref.getMember() == episode.member)
      found.push_back(record);
  }
  return history_of(found, [this](wire::Content::Reader x) -> expected<std::string> {
    auto i = artifacts_.find(x.getArtifact().getSha256().cStr());
    if (i == artifacts_.end()) return infrastructure_error("not_found", "no such artifact");
    return i->second;
  });
}

std::map<std::string, Message<wire::Record>> memory_sink::records() const {
  std::lock_guard guard{mutex_};
  return records_;
}

} // namespace kernelmill
