#include "storage/export.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "messages/base/digest.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"
#include "storage/files.hpp"
#include "storage/group_reader.hpp"
#include "storage/run_directory.hpp"
#include "storage/token_json.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

std::string_view to_string(export_kind x) noexcept {
  switch (x) {
    case export_kind::sft: return "sft";
    case export_kind::rl: return "rl";
    case export_kind::preference: return "preference";
  }
  return "unknown";
}

namespace {

using turn_reader = wire::TurnRecord::Reader;

tl::unexpected<error> unexpected(error x) {
  return tl::unexpected<error>{std::move(x)};
}

ordered_json text_of(capnp::Text::Reader x) {
  return std::string{x.begin(), x.size()};
}

ordered_json number(double x) {
  return std::isfinite(x) ? ordered_json(x) : ordered_json(nullptr);
}

ordered_json reward_of(turn_reader turn) {
  return is_paid(turn.getVerdict()) ? number(turn.getVerdict().getReward()) : nullptr;
}

bool is_lost(turn_reader turn) {
  return turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE;
}

// -- where rows go ------------------------------------------------------------------------------

// Hashes what it writes, so that a large file is not read again.
class row_writer {
public:
  static expected<row_writer> create(const std::string& path) {
    auto file = atomic_file::create(path);
    if (!file) return unexpected(file.error());
    return row_writer{std::move(*file)};
  }

  expected<void> write(const ordered_json& row) {
    auto line = json_line(row) + "\n";
    EVP_DigestUpdate(hash_.get(), line.data(), line.size());
    ++rows_;
    return file_.append(line);
  }

  expected<std::string> finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(hash_.get(), digest, &size);
    if (auto ok = file_.commit(); !ok) return unexpected(ok.error());
    return to_hex(digest, size);
  }

  uint64_t rows() const { return rows_; }

private:
  explicit row_writer(atomic_file file)
      : file_(std::move(file)), hash_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(hash_.get(), EVP_sha256(), nullptr);
  }

  atomic_file file_;
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash_;
  uint64_t rows_ = 0;
};

struct exporter {
  const artifact_store& artifacts;
  row_writer& rows;
  export_report& report;
  std::set<std::string> tasks;
  std::string run;

  expected<ordered_json> prompt(turn_reader turn) const;
  expected<void> append_turn(ordered_json& messages, turn_reader turn, int weight) const;
  expected<void> sft(const stored_group& group);
  expected<void> sft_episode(const stored_episode& episode, wire::EpisodeRecord::Reader end);
  expected<void> rl(const stored_group& group);
  expected<ordered_json> rl_turn(turn_reader turn, wire::EpisodeRecord::Reader end) const;
  expected<void> preference(const stored_group& group);
};

expected<ordered_json> exporter::prompt(turn_reader turn) const {
  auto messages = ordered_json::array();
  for (auto part : turn.getPrompt()) {
    auto content = artifacts.text(part.getContent());
    if (!content) return unexpected(content.error());
    messages.push_back({{"role", text_of(part.getRole())}, {"content", *content}});
  }
  return messages;
}

ordered_json origin(turn_reader turn) {
  auto where = turn.getEpisode();
  return {{"run", text_of(where.getRun())},
          {"task", text_of(where.getTask())},
          {"group", where.getGroup()},
          {"member", where.getMember()},
          {"turn", turn.getTurn()},
          {"turn_id", text_of(turn.getTurnId())},
          {"candidate_sha256", text_of(turn.getCandidateSha256())},
          {"model", text_of(turn.getCompletion().getModel())}};
}

// -- sft ----------------------------------------------------------------------------------------

expected<void> exporter::append_turn(ordered_json& messages, turn_reader turn, int weight) const {
  auto asked = prompt(turn);
  if (!asked) return unexpected(asked.error());
  for (auto& message : *asked) messages.push_back(std::move(message));
  auto text = artifacts.text(turn.getCompletion().getText());
  if (!text) return unexpected(text.error());
  messages.push_back({{"role", "assistant"}, {"content", *text}, {"weight", weight}});
  return {};
}

expected<void> exporter::sft_episode(const stored_episode& episode,
                                     wire::EpisodeRecord::Reader end) {
  auto messages = ordered_json::array();
  for (const auto& stored : episode.turns) {
    auto view = stored.open();
    auto turn = view->getTurn();
    if (turn.getTurn() > end.getBestTurn()) break;
    if (is_lost(turn)) {
      ++report.left_out["infrastructure_turns"];
      continue;
    }
    bool best = turn.getTurn() == end.getBestTurn();
    if (auto ok = append_turn(messages, turn, best ? 1 : 0); !ok) return ok;
    if (!best) continue;
    auto facts = turn.getFacts();
    ordered_json row = {{"messages", std::move(messages)}, {"origin", origin(turn)}};
    row["metadata"] = {{"verb", text_of(facts.getVerb())},
                       {"operator_family", text_of(facts.getOperatorFamily())},
                       {"backend", text_of(facts.getBackend())},
                       {"reward", reward_of(turn)},
                       {"speedup_low", number(end.getBestSpeedup())}};
    tasks.insert(turn.getEpisode().getTask().cStr());
    return rows.write(row);
  }
  ++report.left_out["best_turn_missing"];
  return {};
}

expected<void> exporter::sft(const stored_group& group) {
  for (const auto& episode : group.episodes) {
    if (!episode.end) {
      ++report.left_out["unfinished"];
      continue;
    }
    auto view = episode.end->open();
    auto end = view->getEpisode();
    auto kind = end.getReadiness().getKind();
    if (kind != wire::EpisodeKind::USABLE_POSITIVE_SFT) {
      ++report.left_out[enum_name(capnp::DynamicEnum{std::move(kind)})];
      continue;
    }
    if (auto ok = sft_episode(episode, end); !ok) return ok;
  }
  return {};
}

// -- rl -----------------------------------------------------------------------------------------

expected<ordered_json> exporter::rl_turn(turn_reader turn, wire::EpisodeRecord::Reader end) const {
  auto asked = prompt(turn);
  if (!asked) return asked;
  auto text = artifacts.text(turn.getCompletion().getText());
  if (!text) return unexpected(text.error());
  auto completion = turn.getCompletion();
  auto number_of_turn = turn.getTurn();
  auto returns = end.getReturns();
  ordered_json row = {{"turn", number_of_turn},
                      {"turn_id", text_of(turn.getTurnId())},
                      {"messages", std::move(*asked)},
                      {"response", *text},
                      {"finish_reason", text_of(completion.getFinishReason())},
                      {"model", text_of(completion.getModel())}};
  add_token_lists(row, completion);
  row["tokens"] = token_audit_json(completion);
  if (completion.getWeightVersions().size() > 0)
    row["weight_versions"] = weight_versions_json(completion);
  row["reward"] = reward_of(turn);
  row["return"] = number_of_turn < returns.size() ? number(returns[number_of_turn]) : nullptr;
  auto outcome = turn.getVerdict().getOutcome();
  row["outcome"] = enum_name(capnp::DynamicEnum{std::move(outcome)});
  row["category"] = text_of(turn.getVerdict().getCategory());
  return row;
}

ordered_json advantage_of(const stored_group& group, uint32_t member) {
  if (!group.end) return nullptr;
  auto view = group.end->open();
  auto values = view->getGroup().getAdvantages();
  return member < values.size() ? number(values[member]) : nullptr;
}

expected<void> exporter::rl(const stored_group& group) {
  for (const auto& episode : group.episodes) {
    if (!episode.end) {
      ++report.left_out["unfinished"];
      continue;
    }
    auto view = episode.end->open();
    auto end = view->getEpisode();
    auto turns = ordered_json::array();
    for (const auto& stored : episode.turns) {
      auto turn = stored.open();
      if (is_lost(turn->getTurn())) {
        ++report.left_out["infrastructure_turns"];
        continue;
      }
      auto row = rl_turn(turn->getTurn(), end);
      if (!row) return unexpected(row.error());
      turns.push_back(std::move(*row));
    }
    if (turns.empty()) {
      ++report.left_out["infrastructure_episodes"];
      continue;
    }
    auto outcome = end.getOutcome();
    auto where = end.getEpisode();
    tasks.insert(where.getTask().cStr());
    ordered_json row = {{"run", run},
                        {"task", text_of(where.getTask())},
                        {"group_id", run + "/g" + std::to_string(group.group)},
                        {"member", episode.member},
                        {"status", enum_name(capnp::DynamicEnum{std::move(outcome)})},
                        {"stop_reason", text_of(end.getStopReason())},
                        {"advantage", advantage_of(group, episode.member)},
                        {"turns", std::move(turns)}};
    if (auto ok = rows.write(row); !ok) return ok;
  }
  return {};
}

// -- preference ---------------------------------------------------------------------------------

struct choice {
  const Message<wire::Record>* record = nullptr;
  double reward = 0;
};

struct pair_of_choices {
  choice best, worst;

  void look_at(const Message<wire::Record>& record) {
    auto view = record.open();
    auto verdict = view->getTurn().getVerdict();
    auto reward = verdict.getReward();
    bool accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
    if (accepted && (!best.record || reward > best.reward)) best = {&record, reward};
    if (!accepted && (!worst.record || reward < worst.reward)) worst = {&record, reward};
  }
  bool complete() const { return best.record && worst.record; }
};

expected<void> exporter::preference(const stored_group& group) {
  pair_of_choices first_turns, all_turns;
  const Message<wire::Record>* opening = nullptr;
  for (const auto& episode : group.episodes)
    for (const auto& stored : episode.turns) {
      auto turn = stored.open();
      bool is_first = turn->getTurn().getTurn() == 0;
      if (is_first && !opening) opening = &stored;
      if (is_lost(turn->getTurn())) {
        ++report.left_out["infrastructure_turns"];
        continue;
      }
      if (!is_paid(turn->getTurn().getVerdict())) {
        ++report.left_out["not_timed_turns"];
        continue;
      }
      if (is_first) first_turns.look_at(stored);
      all_turns.look_at(stored);
    }
  const auto& chosen = first_turns.complete() ? first_turns : all_turns;
  if (!opening || !chosen.complete()) {
    ++report.left_out["groups_without_contrast"];
    return {};
  }
  auto asked = prompt(opening->open()->getTurn());
  if (!asked) return unexpected(asked.error());
  ordered_json row = {{"prompt", std::move(*asked)}};
  for (auto [key, which] : {std::pair{"chosen", &chosen.best}, {"rejected", &chosen.worst}}) {
    auto view = which->record->open();
    auto text = artifacts.text(view->getTurn().getCompletion().getText());
    if (!text) return unexpected(text.error());
    row[key] = ordered_json::array({{{"role", "assistant"}, {"content", *text}}});
    row[std::string{key} + "_origin"] = origin(view->getTurn());
    row[std::string{key} + "_reward"] = number(which->reward);
    tasks.insert(view->getTurn().getEpisode().getTask().cStr());
  }
  row["same_context"] = first_turns.complete();
  return rows.write(row);
}

expected<std::vector<std::string>> runs_to_read(const store& from, const export_request& what) {
  auto known = from.runs();
  if (!known || what.runs.empty()) return known;
  for (const auto& run : what.runs)
    if (std::find(known->begin(), known->end(), run) == known->end())
      return configuration_error("not_found",
                                 "failed to export run " + run + ": the store has no such run",
                                 "kernelmill show lists what is there");
  return what.runs;
}

ordered_json manifest_of(const export_request& what, const export_report& report,
                         const std::vector<std::string>& runs, const exporter& state) {
  return {{"schema_version", run_schema_version},
          {"kind", to_string(what.kind)},
          {"file", std::string{to_string(what.kind)} + ".jsonl"},
          {"sha256", report.sha256},
          {"rows", report.rows},
          {"runs", runs},
          {"tasks", state.tasks},
          {"left_out", report.left_out}};
}

} // namespace

expected<export_report> export_dataset(const store& from, const artifact_store& artifacts,
                                       const export_request& what) {
  auto runs = runs_to_read(from, what);
  if (!runs) return unexpected(runs.error());
  if (auto ok = make_directories(what.directory); !ok) return unexpected(ok.error());
  export_report report;
  auto stem = what.directory + "/" + std::string{to_string(what.kind)};
  report.file = stem + ".jsonl";
  report.manifest = stem + ".manifest.json";
  auto rows = row_writer::create(report.file);
  if (!rows) return unexpected(rows.error());
  exporter state{artifacts, *rows, report, {}, {}};
  for (const auto& run : *runs) {
    state.run = run;
    auto ok = for_each_group(from, run, [&](const stored_group& group) {
      switch (what.kind) {
        case export_kind::sft: return state.sft(group);
        case export_kind::rl: return state.rl(group);
        case export_kind::preference: break;
      }
      return state.preference(group);
    });
    if (!ok) return unexpected(ok.error());
  }
  auto sha256 = rows->finish();
  if (!sha256) return unexpected(sha256.error());
  report.sha256 = *sha256;
  report.rows = rows->rows();
  if (auto ok = write_json(report.manifest, manifest_of(what, report, *runs, state)); !ok)
    return unexpected(ok.error());
  return report;
}

} // namespace kernelmill
