#include "storage/lineage/group_reader.hpp"

#include <kj/exception.h>

namespace kernelmill {

namespace {

uint32_t member_of(wire::Record::Reader record) {
  return record.isTurn() ? record.getTurn().getEpisode().getMember()
                         : record.getEpisode().getEpisode().getMember();
}

} // namespace

expected<stored_group> read_group(const store& from, const std::string& run, uint32_t group) {
  stored_group result;
  result.group = group;
  auto ok = from.scan_group(run, group, [&](wire::Record::Reader record) {
    auto copy = copy_of<wire::Record>(record);
    if (record.isGroup()) {
      result.end = std::move(copy);
      return true;
    }
    auto member = member_of(record);
    if (result.episodes.empty() || result.episodes.back().member != member)
      result.episodes.push_back({member, {}, {}});
    auto& episode = result.episodes.back();
    if (record.isTurn()) {
      episode.turns.push_back(std::move(copy));
    } else {
      episode.end = std::move(copy);
    }
    return true;
  });
  KM_TRY(ok);
  return result;
}

expected<stored_episode> read_episode(const store& from, const std::string& run, uint32_t group,
                                      uint32_t member) {
  stored_episode result;
  result.member = member;
  auto ok = from.scan_episode(run, group, member, [&](wire::Record::Reader record) {
    auto copy = copy_of<wire::Record>(record);
    if (record.isTurn()) {
      result.turns.push_back(std::move(copy));
    } else {
      result.end = std::move(copy);
    }
    return true;
  });
  KM_TRY(ok);
  return result;
}

expected<void> for_each_group(const store& from, const std::string& run,
                              const group_visitor& visit) {
  auto numbers = from.groups(run);
  KM_TRY(numbers);
  for (auto number : *numbers) {
    auto group = read_group(from, run, number);
    KM_TRY(group);
    try {
      if (auto ok = visit(*group); !ok) return ok;
    } catch (const kj::Exception& e) {
      return infrastructure_error("store_damaged", "failed to read group " +
                                                       std::to_string(number) + " of run " + run +
                                                       ": " + e.getDescription().cStr());
    }
  }
  return {};
}

} // namespace kernelmill
