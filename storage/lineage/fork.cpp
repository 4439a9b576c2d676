#include "storage/lineage/fork.hpp"

#include <filesystem>

#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/contents.hpp"
#include "messages/identity.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

expected<stored_episode> read_origin(const run_directory& run, uint32_t group, uint32_t member) {
  auto from = store::open({.directory = run.store, .read_only = true});
  KM_TRY(from);
  return read_episode(*from, run.name, group, member);
}

/// Moves the texts of a turn that are artifacts of one store into another.
class text_mover {
public:
  text_mover(const artifact_store& from, artifact_store& to) : from_(from), to_(to) {}

  expected<void> move_all(wire::TurnRecord::Reader x) {
    expected<void> result;
    for_each_content(x, [&](wire::Content::Reader content, const char*) {
      if (result) result = move(content);
    });
    return result;
  }

  expected<void> put(wire::Content::Builder into, const std::string& text) {
    if (text.size() <= inline_content_bytes) {
      into.setInline(text);
      return {};
    }
    auto sha256 = sha256_hex(text);
    KM_TRY(to_.put(sha256, text));
    auto ref = into.initArtifact();
    ref.setSha256(sha256);
    ref.setSize(text.size());
    return {};
  }

private:
  expected<void> move(wire::Content::Reader x) {
    if (!x.isArtifact() || from_.directory() == to_.directory()) return {};
    auto sha256 = std::string{x.getArtifact().getSha256().cStr()};
    auto bytes = from_.get(sha256);
    KM_TRY(bytes);
    return to_.put(sha256, *bytes);
  }

  const artifact_store& from_;
  artifact_store& to_;
};

/// What a fork makes of its last shared turn; nothing: what it is.
struct told {
  std::string active;                     ///< candidate
  std::optional<std::string> feedback;    ///< for the next prompt
  std::optional<std::string> observation; ///< of the last call, where calls came natively
};

expected<told> told_by(const fork_origin& fork, wire::TurnRecord::Reader turn,
                       const artifact_store& artifacts) {
  told result;
  if (turn.getTurn() + 1 != fork.turns) return result;
  result.active = fork.candidate;
  auto prompt = fork.prompt;
  if (!fork.candidate.empty()) prompt = fork.candidate + " is the active candidate now.\n" + prompt;
  if (prompt.empty()) return result;
  auto extended = [&](wire::Content::Reader x) -> expected<std::string> {
    auto said = artifacts.text(x);
    KM_TRY(said);
    return *said + (said->ends_with('\n') ? "\n" : "\n\n") + prompt;
  };
  auto feedback = extended(turn.getFeedback());
  KM_TRY(feedback);
  result.feedback = std::move(*feedback);
  auto calls = turn.getCalls();
  if (calls.size() == 0 || turn.getCompletion().getCallsAsText()) return result;
  auto observation = extended(calls[calls.size() - 1].getObservation());
  KM_TRY(observation);
  result.observation = std::move(*observation);
  return result;
}

/// The turn as a turn of the fork.
expected<Message<wire::Record>> copy_for(const Message<wire::Record>& from, const std::string& run,
                                         uint32_t member, const told& what, text_mover& texts) {
  auto view = from.open();
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*view);
  auto turn = builder.getRoot<wire::Record>().getTurn();
  auto e = turn.getEpisode();
  e.setRun(run);
  e.setGroup(0);
  e.setMember(member);
  episode_id id{run, e.getTask().cStr(), 0, member};
  turn.setTurnId(turn_id(id, turn.getTurn()));
  turn.setParentTurnId(turn.getTurn() > 0 ? turn_id(id, turn.getTurn() - 1) : std::string{});
  turn.setTerminal(false); // it goes on
  turn.setStopReason("");
  if (what.feedback) KM_TRY(texts.put(turn.initFeedback(), *what.feedback));
  if (!what.active.empty()) turn.setActive(what.active);
  // Where calls came natively, the policy reads their observations and not the feedback.
  auto calls = turn.getCalls();
  if (what.observation)
    KM_TRY(texts.put(calls[calls.size() - 1].initObservation(), *what.observation));
  return Message<wire::Record>{builder};
}

expected<bool> are_there(const store& in, const fork_origin& from, const std::string& run,
                         uint32_t members) {
  for (uint32_t member = 0; member < members; ++member) {
    auto last = in.find_turn(turn_id({run, from.task, 0, member}, from.turns - 1));
    KM_TRY(last);
    if (!*last) return false;
  }
  return true;
}

expected<run_directory> open_origin(const fork_origin& from) {
  auto run = open_run(from.directory);
  if (run && run->name == from.run) return run;
  return configuration_error(
      "fork_origin_gone",
      "failed to copy the turns that a fork shares: the run " + from.run + " is not in " +
          from.directory + (run ? "" : ": " + run.error().message),
      "put it back there and resume; the fork needs it no more once its shared turns are copied");
}

json policies_json(const std::vector<asked_policy>& xs) {
  auto result = json::array();
  for (const auto& x : xs) result.push_back({{"model", x.model}, {"licence", x.licence}});
  return result;
}

std::vector<asked_policy> policies_in(const json& listed) {
  std::vector<asked_policy> result;
  for (const auto& x : listed)
    result.push_back({x.value("model", std::string{}), x.value("licence", std::string{})});
  return result;
}

constexpr int longest_chain = 100; // of forks of forks; a circle would have no end

/// A run's own policy, and those that wrote the turns that it shares.
std::optional<std::vector<asked_policy>> policies_of(const json& manifest, int depth);

std::optional<std::vector<asked_policy>> policies_of_origin(const json& manifest, int depth) {
  auto fork = manifest.find("fork");
  if (fork == manifest.end()) return std::vector<asked_policy>{};
  if (!fork->is_object() || depth > longest_chain) return std::nullopt;
  if (fork->contains("policies")) return policies_in((*fork)["policies"]);
  // Of an older program: its origin says it, as long as that is there.
  auto origin = read_json(fork->value("directory", std::string{}) + "/manifest.json");
  return origin ? policies_of(*origin, depth + 1) : std::nullopt;
}

std::optional<std::vector<asked_policy>> policies_of(const json& manifest, int depth) {
  auto result = policies_of_origin(manifest, depth);
  if (!result) return result;
  auto own = manifest.value("policy", json::object());
  result->push_back({own.value("model", std::string{}), own.value("licence", std::string{})});
  return result;
}

} // namespace

json to_json(const fork_origin& x) {
  return {{"directory", x.directory},
          {"run", x.run},
          {"task", x.task},
          {"task_digest", x.task_digest},
          {"group", x.group},
          {"member", x.member},
          {"turns", x.turns},
          {"turn_id", x.turn_id},
          {"prompt", x.prompt},
          {"candidate", x.candidate},
          {"policies", policies_json(x.policies)}};
}

std::optional<std::vector<asked_policy>> policies_of_shared_turns(const json& manifest) {
  try {
    return policies_of_origin(manifest, 0);
  } catch (const json::exception&) { // of another version
    return std::nullopt;
  }
}

std::optional<fork_origin> fork_of(const json& manifest) {
  auto found = manifest.is_object() ? manifest.find("fork") : manifest.end();
  if (found == manifest.end() || !found->is_object()) return std::nullopt;
  try {
    fork_origin x;
    x.directory = found->at("directory").get<std::string>();
    x.run = found->at("run").get<std::string>();
    x.task = found->at("task").get<std::string>();
    x.task_digest = found->at("task_digest").get<std::string>();
    x.group = found->at("group").get<uint32_t>();
    x.member = found->at("member").get<uint32_t>();
    x.turns = found->at("turns").get<uint32_t>();
    x.turn_id = found->at("turn_id").get<std::string>();
    x.prompt = found->value("prompt", std::string{});
    x.candidate = found->value("candidate", std::string{});
    x.policies = policies_in(found->value("policies", json::array()));
    return x.turns > 0 ? std::optional{x} : std::nullopt;
  } catch (const json::exception&) { // of another version
    return std::nullopt;
  }
}

expected<std::optional<fork_origin>> fork_of(const run_directory& run) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  return fork_of(*manifest);
}

expected<fork_origin> fork_from(const run_directory& from, uint32_t group, uint32_t member,
                                uint32_t turns) {
  auto name = "g" + std::to_string(group) + ".e" + std::to_string(member);
  auto episode = read_origin(from, group, member);
  KM_TRY(episode);
  if (turns == 0)
    return configuration_error("usage", "failed to fork " + name + ".t0: it shares no turn",
                               "name a later turn; a new run starts from nothing");
  if (episode->turns.size() < turns)
    return configuration_error("not_found",
                               "failed to fork " + name + ".t" + std::to_string(turns) +
                                   ": the episode has " + std::to_string(episode->turns.size()) +
                                   " turns",
                               "`kernelmill lineage " + from.path + "/" + name + "` shows them");
  fork_origin x;
  x.directory = std::filesystem::absolute(from.path).lexically_normal().string();
  x.run = from.name;
  x.group = group;
  x.member = member;
  x.turns = turns;
  for (uint32_t i = 0; i < turns; ++i) {
    auto view = episode->turns[i].open();
    auto turn = view->getTurn();
    if (turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE)
      return configuration_error("usage",
                                 "failed to fork " + name + ": the infrastructure lost its turn t" +
                                     std::to_string(i) + ", so the policy has not read of it",
                                 "fork at t" + std::to_string(i) + " or before");
    x.task = turn.getEpisode().getTask().cStr();
    x.turn_id = turn.getTurnId().cStr();
  }
  auto manifest = read_json(from.manifest_file());
  KM_TRY(manifest);
  for (const auto& task : manifest->value("tasks", json::array()))
    if (task.value("id", std::string{}) == x.task)
      x.task_digest = task.value("digest", std::string{});
  auto policies = policies_of(*manifest, 0);
  if (!policies)
    return configuration_error(
        "fork_origin_gone",
        "failed to fork " + name +
            ": its run is a fork itself, of a run that is gone, and nothing "
            "says which model answered in its first turns",
        "put " + manifest->value(json::json_pointer{"/fork/directory"}, std::string{"it"}) +
            " back");
  x.policies = std::move(*policies);
  return x;
}

expected<void> commit_shared_turns(const fork_origin& from, const run_directory& into,
                                   uint32_t members, store& to, artifact_store& artifacts) {
  const auto& run = into.name;
  auto there = are_there(to, from, run, members);
  KM_TRY(there);
  if (*there) return {};
  auto origin = open_origin(from);
  KM_TRY(origin);
  std::error_code code;
  bool one_store = std::filesystem::equivalent(origin->store, into.store, code); // shared by runs
  auto episode = one_store ? read_episode(to, origin->name, from.group, from.member)
                           : read_origin(*origin, from.group, from.member);
  KM_TRY(episode);
  if (episode->turns.size() < from.turns)
    return infrastructure_error("store_damaged", "failed to copy the turns that a fork shares: " +
                                                     origin->path + " has lost some of them");
  artifact_store texts_of_origin{origin->artifacts};
  text_mover texts{texts_of_origin, artifacts};
  std::vector<Message<wire::Record>> records;
  for (uint32_t i = 0; i < from.turns; ++i) {
    auto view = episode->turns[i].open();
    KM_TRY(texts.move_all(view->getTurn()));
    auto what = told_by(from, view->getTurn(), texts_of_origin);
    KM_TRY(what);
    for (uint32_t member = 0; member < members; ++member) {
      auto copy = copy_for(episode->turns[i], run, member, *what, texts);
      KM_TRY(copy);
      records.push_back(std::move(*copy));
    }
  }
  auto done = to.commit(records);
  KM_TRY(done);
  return {};
}

} // namespace kernelmill
