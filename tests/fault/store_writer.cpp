// Commits turns and artifacts without end and prints the id of each turn that was acknowledged,
// until it is killed. Each life goes on with the episode after the last one in the store.
//
//   store_writer DIRECTORY SEED

#include <cstdio>
#include <random>
#include <string>

#include <unistd.h>

#include "messages/base/digest.hpp"
#include "messages/identity.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {
namespace {

constexpr uint32_t turns_per_episode = 4;

struct planned_turn {
  Message<wire::Record> record;
  std::string id;
  std::string text;
  std::string text_sha256;
};

// What a turn holds follows from its number alone, so that the test can tell a wrong one.
planned_turn plan_turn(uint32_t group, uint32_t number) {
  planned_turn result;
  episode_id episode{"killed", "task", group, 0};
  result.id = turn_id(episode, number);
  std::mt19937 random{group * turns_per_episode + number};
  result.text.assign(random() % 9000, static_cast<char>('a' + random() % 26));
  result.text_sha256 = sha256_hex(result.text);
  result.record = build<wire::Record>([&](wire::Record::Builder record) {
    auto turn = record.initTurn();
    turn.setTurnId(result.id);
    auto where = turn.initEpisode();
    where.setRun(episode.run);
    where.setTask(episode.task);
    where.setGroup(group);
    turn.setTurn(number);
    if (result.text.size() <= inline_content_bytes) {
      turn.initCandidate().setInline(result.text);
    } else {
      auto artifact = turn.initCandidate().initArtifact();
      artifact.setSha256(result.text_sha256);
      artifact.setSize(result.text.size());
    }
  });
  return result;
}

int run(const std::string& directory, uint32_t seed) {
  auto lineage = store::open({.directory = directory + "/lineage", .map_bytes = 256 << 10});
  if (!lineage) {
    std::fprintf(stderr, "%s\n", render(lineage.error()).c_str());
    return 1;
  }
  artifact_store artifacts{directory + "/artifacts"};
  auto groups = lineage->groups("killed");
  if (!groups) return 1;
  std::mt19937 random{seed};
  // The last episode may be cut off; its turns are offered again and must not be doubled.
  uint32_t group = groups->empty() ? 0 : groups->back();
  for (;;) {
    std::vector<Message<wire::Record>> batch;
    std::string acknowledged;
    auto last = group + 1 + random() % 4;
    for (; group < last; ++group)
      for (uint32_t number = 0; number < turns_per_episode; ++number) {
        auto turn = plan_turn(group, number);
        if (turn.text.size() > inline_content_bytes)
          if (auto ok = artifacts.put(turn.text_sha256, turn.text); !ok) return 1;
        batch.push_back(turn.record);
        acknowledged += turn.id + "\n";
      }
    auto answer = lineage->commit(batch);
    if (!answer) {
      std::fprintf(stderr, "%s\n", render(answer.error()).c_str());
      return 1;
    }
    // One write, so that a line is whole or absent; the pipe holds 64 KiB.
    if (::write(STDOUT_FILENO, acknowledged.data(), acknowledged.size()) < 0) return 1;
  }
}

} // namespace
} // namespace kernelmill

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return kernelmill::run(argv[1], static_cast<uint32_t>(std::stoul(argv[2])));
}
