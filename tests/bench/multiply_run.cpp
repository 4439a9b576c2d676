// Makes a large run of a small one, for figures of what reads stored runs: each group again and
// again under other numbers, with real facts and texts.
//   multiply_run RUN NEW_RUN TIMES

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

template <class T>
T must(expected<T> x) {
  if (!x) {
    fmt::print(stderr, "{}\n", render(x.error()));
    std::exit(1);
  }
  return std::move(*x);
}

void rename(wire::EpisodeRef::Builder x, const std::string& run, uint32_t group) {
  x.setRun(run);
  x.setGroup(group);
}

Message<wire::Record> copy_to(const Message<wire::Record>& from, const std::string& run,
                              uint32_t group) {
  auto view = from.open();
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*view);
  auto x = builder.getRoot<wire::Record>();
  if (x.isTurn()) {
    auto turn = x.getTurn();
    rename(turn.getEpisode(), run, group);
    auto e = turn.getEpisode().asReader();
    episode_id id{run, e.getTask().cStr(), group, e.getMember()};
    turn.setTurnId(turn_id(id, turn.getTurn()));
    if (turn.getTurn() > 0) turn.setParentTurnId(turn_id(id, turn.getTurn() - 1));
  } else if (x.isEpisode()) {
    rename(x.getEpisode().getEpisode(), run, group);
  } else if (x.isGroup()) {
    x.getGroup().setRun(run);
    x.getGroup().setGroup(group);
  } else {
    x.getRun().setRun(run);
  }
  return Message<wire::Record>{builder};
}

void add_group(store& to, const std::string& run, uint32_t number, const stored_group& group) {
  std::vector<Message<wire::Record>> batch;
  for (const auto& e : group.episodes) {
    for (const auto& x : e.turns) batch.push_back(copy_to(x, run, number));
    if (e.end) batch.push_back(copy_to(*e.end, run, number));
  }
  if (group.end) batch.push_back(copy_to(*group.end, run, number));
  must(to.commit(batch));
}

int multiply(const std::string& source, const std::string& target, uint32_t times) {
  auto from = must(find_run(source));
  auto config = must(read_json(from.config_file()));
  auto manifest = must(read_json(from.manifest_file()));
  for (const auto* own : {"schema_version", "run", "store", "created_at"}) manifest.erase(own);
  new_run what;
  what.path = target;
  auto to = must(create_run(what, config, manifest));
  std::error_code code;
  fs::remove(to.artifacts, code);
  fs::create_directory_symlink(fs::absolute(from.artifacts), to.artifacts, code);
  auto facts = must(store::open({.directory = from.store, .read_only = true}));
  auto lineage = must(store::open({.directory = to.store, .durable = false}));
  std::vector<Message<wire::Record>> openings;
  (void)facts.scan_openings(from.name, [&](wire::Record::Reader x) {
    openings.push_back(copy_to(copy_of<wire::Record>(x), to.name, 0));
    return true;
  });
  must(lineage.commit(openings));
  auto groups = must(facts.groups(from.name));
  uint64_t turns = 0;
  for (uint32_t i = 0; i < times; ++i)
    for (uint32_t k = 0; k < groups.size(); ++k) {
      auto group = must(read_group(facts, from.name, groups[k]));
      for (const auto& e : group.episodes) turns += e.turns.size();
      add_group(lineage, to.name, i * static_cast<uint32_t>(groups.size()) + k, group);
    }
  fmt::print("{} turns\n", turns);
  return 0;
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: multiply_run RUN NEW_RUN TIMES\n");
    return 2;
  }
  return kernelmill::multiply(argv[1], argv[2], static_cast<uint32_t>(std::atoi(argv[3])));
}
