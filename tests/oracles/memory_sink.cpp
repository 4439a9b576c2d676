#include "tests/oracles/memory_sink.hpp"

#include <cstdio>

namespace kernelmill {

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
