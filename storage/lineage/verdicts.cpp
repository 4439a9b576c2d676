#include "storage/lineage/verdicts.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "messages/base/clock.hpp"
#include "messages/base/digest.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr int verdicts_schema_version = 1;

std::string folder_of(const run_directory& run) {
  return run.path + "/verdicts";
}

std::string names_of(const std::vector<verdict_version>& xs) {
  std::string result = original_verdicts;
  for (const auto& x : xs) result += ", " + x.name;
  return result;
}

expected<verdict_version> read_version(const std::string& path) {
  auto rules = read_json(path + "/rules.json");
  KM_TRY(rules);
  auto schema = rules->value("schema_version", 0);
  if (schema > verdicts_schema_version)
    return configuration_error("store_newer",
                               fmt::format("failed to read {}/rules.json: its schema version is "
                                           "{}, this program knows {}",
                                           path, schema, verdicts_schema_version),
                               "use the program that wrote it");
  verdict_version x;
  x.name = fs::path{path}.filename().string();
  x.path = path;
  x.number = rules->value("number", uint64_t{0});
  x.digest = rules->value("digest", std::string{});
  x.rules = std::move(*rules);
  return x;
}

bool is_name(const std::string& x) {
  auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !x.empty() && x.size() <= 64 && x.front() != '.' &&
         std::all_of(x.begin(), x.end(), plain) && x != original_verdicts && x != latest_verdicts;
}

tl::unexpected<error> taken(const verdict_version& x) {
  return configuration_error("verdicts_exist",
                             fmt::format("failed to judge as '{}': the run has verdicts of that "
                                         "name by other rules, or by another program",
                                         x.name),
                             "give them another name with --name; " + x.path +
                                 "/rules.json has those rules");
}

tl::unexpected<error> incomplete(const std::string& what) {
  return configuration_error("verdicts_incomplete",
                             "failed to read verdicts: " + what +
                                 " was committed after the run was judged again",
                             "`kernelmill rescore` with the same rules judges what is missing");
}

/// A record of `facts` with what `judged` has of its own.
Message<wire::Record> merged(const Message<wire::Record>& facts, wire::TurnRecord::Reader judged) {
  auto view = facts.open();
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*view);
  auto turn = builder.getRoot<wire::Record>().getTurn();
  turn.setVerdict(judged.getVerdict());
  turn.setTransition(judged.getTransition());
  return Message<wire::Record>{builder};
}

expected<stored_episode> with_verdicts(const stored_episode& facts, const stored_episode& judged) {
  stored_episode result;
  result.member = facts.member;
  for (size_t i = 0; i < facts.turns.size(); ++i) {
    if (i >= judged.turns.size()) return incomplete("a turn");
    auto own = facts.turns[i].open();
    auto other = judged.turns[i].open();
    if (own->getTurn().getTurnId() != other->getTurn().getTurnId())
      return infrastructure_error("store_damaged",
                                  fmt::format("failed to read verdicts: turn t{} of theirs is not "
                                              "the turn of the run",
                                              i));
    result.turns.push_back(merged(facts.turns[i], other->getTurn()));
  }
  if (facts.end && !judged.end) return incomplete("the end of an episode");
  if (facts.end) result.end = judged.end;
  return result;
}

} // namespace

expected<std::vector<verdict_version>> list_verdicts(const run_directory& run) {
  std::vector<verdict_version> result;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator{folder_of(run), code}) {
    auto path = entry.path().string();
    if (!fs::exists(path + "/rules.json", code)) continue;
    auto x = read_version(path);
    KM_TRY(x);
    result.push_back(std::move(*x));
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return result;
}

expected<std::optional<verdict_version>> find_verdicts(const run_directory& run,
                                                       const std::string& name) {
  if (name == original_verdicts) return std::nullopt;
  auto all = list_verdicts(run);
  KM_TRY(all);
  if (name == latest_verdicts)
    return all->empty() ? std::nullopt : std::optional{std::move(all->back())};
  for (auto& x : *all)
    if (x.name == name) return std::optional{std::move(x)};
  return configuration_error(
      "not_found", fmt::format("failed to find the verdicts '{}' of the run {}", name, run.name),
      "there are: " + names_of(*all));
}

expected<verdict_version> begin_verdicts(const run_directory& run, const std::string& name,
                                         const json& rules) {
  auto digest = sha256_hex(rules.dump());
  auto chosen = name.empty() ? "rules-" + digest.substr(0, 12) : name;
  if (!is_name(chosen))
    return configuration_error("invalid_value", "failed to name verdicts '" + chosen + "'",
                               "use letters, digits, '.', '_' and '-', and neither \"original\" "
                               "nor \"latest\"");
  auto all = list_verdicts(run);
  KM_TRY(all);
  uint64_t number = 1;
  for (auto& x : *all) {
    number = std::max(number, x.number + 1);
    if (x.name != chosen) continue;
    if (x.digest != digest) return taken(x);
    return std::move(x);
  }
  auto path = folder_of(run) + "/" + chosen;
  KM_TRY(make_directories(path));
  json document = {{"schema_version", verdicts_schema_version},
                   {"name", chosen},
                   {"number", number},
                   {"digest", digest},
                   {"created_at", utc_text(std::time(nullptr))},
                   {"rules", rules}};
  KM_TRY(write_json(path + "/rules.json", document));
  return read_version(path);
}

expected<stored_group> with_verdicts(const stored_group& facts, const stored_group& judged) {
  std::map<uint32_t, const stored_episode*> by_member;
  for (const auto& x : judged.episodes) by_member[x.member] = &x;
  stored_group result;
  result.group = facts.group;
  for (const auto& x : facts.episodes) {
    auto found = by_member.find(x.member);
    if (found == by_member.end()) return incomplete("an episode");
    auto merged = with_verdicts(x, *found->second);
    KM_TRY(merged);
    result.episodes.push_back(std::move(*merged));
  }
  if (facts.end && !judged.end) return incomplete("the end of a group");
  if (facts.end) result.end = judged.end;
  return result;
}

} // namespace kernelmill
