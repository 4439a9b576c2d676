// `kernelmill show`: a run, a group, an episode, a turn or a candidate, from the store.

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "launch/analysis/watch/run_now.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/view/call_text.hpp"
#include "launch/commands/view/remote_run.hpp"
#include "launch/commands/view/reward_text.hpp"
#include "launch/commands/view/turn_sections.hpp"
#include "launch/commands/view/view_options.hpp"
#include "launch/judging/verdict_text.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/json.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// A sum with the unknown reward of a turn in it is not known either.
std::string return_text(double x) {
  return std::isnan(x) ? "-" : fmt::format("{:.3f}", x);
}

// -- a run or a group ---------------------------------------------------------------------------

std::string episodes_table(const run_view& view) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& e : view.episodes) {
    rows.push_back({fmt::format("g{}.e{}", e.group, e.member), e.task, e.outcome,
                    return_text(e.first_return)});
    cli::add_cells(rows.back(), speedup_cells(e.best));
    rows.back().push_back(joined(e.categories, " > "));
  }
  std::vector<std::string> head{"EPISODE", "TASK", "OUTCOME", "RETURN>"};
  cli::add_cells(head, cli::interval_headers("BEST SPEEDUP"));
  head.emplace_back("TURNS");
  return cli::format_table(head, rows);
}

/// The origin of a run's figures where not all of them were measured in this run.
std::string origin_text(const run_directory& run) {
  auto manifest = read_json(run.manifest_file());
  if (!manifest || !manifest->is_object()) return {};
  std::string result;
  if (auto found = manifest->find("imported"); found != manifest->end() && found->is_object()) {
    auto system = text_in(*found, "system");
    result += fmt::format("imported from {}: its rewards were not measured here\n",
                          system.empty() ? "elsewhere" : cli::clean(system));
  }
  if (auto found = manifest->find("restored"); found != manifest->end() && found->is_array())
    for (const auto& x : *found)
      result += fmt::format(
          "restored from {}: {} with {}, as its rows say\n", cli::clean(text_in(x, "from")),
          counted(count_in(x, "episodes", 0), "episode"), counted(count_in(x, "turns", 0), "turn"));
  return result;
}

/// Of a run whose latest session has no end: what its actors say, or that it was cut off. Answers
/// what else is to be said: of a search that its winner is to be measured.
expected<std::string> settle_state(run_view& view, const run_directory& run) {
  auto plan = watch::read_plan(run);
  if (view.state != "open" && !plan.search) return std::string{};
  auto now = watch::look_at_run(watch::local_world({}), run);
  KM_TRY(now);
  view.state = now->state();
  if (!now->lacks_winner(run, plan)) return std::string{};
  return fmt::format("; {}\nnext: {}", watch::winner_not_measured,
                     watch::how_to_measure_winner(view.directory));
}

expected<int> show_run(const invocation& in, const place& at, const std::string& directory) {
  auto view = view_run(at.run, at.whole_run ? nullptr : &at.name.group);
  KM_TRY(view);
  view->directory = directory;
  std::string more;
  if (!asks_head(in)) {
    auto settled = settle_state(*view, at.run);
    KM_TRY(settled);
    more = std::move(*settled);
  }
  if (!at.whole_run && view->episodes.empty())
    return configuration_error(
        "not_found",
        fmt::format("failed to find g{} in the run '{}': it has no such group", at.name.group,
                    at.run.name),
        "`kernelmill show " + directory + "` lists what is there");
  if (in.json) {
    cli::print_json(to_json(*view));
    return 0;
  }
  cli::print(fmt::format("run {} in {}\n{}{}\n{}\n", view->run, view->directory, state_text(*view),
                         more, origin_text(at.run)));
  if (view->episodes.empty()) {
    cli::print("no turn is committed\n");
    return 0;
  }
  if (at.whole_run) {
    std::string alarms;
    for (const auto& alarm : view->alarms) alarms += alarm_text(alarm);
    cli::print(task_table(*view) + not_timed_text(*view) + alarms + "\n" + speedups_text(*view) +
               evidence_text(*view) + "\n");
  }
  cli::print(episodes_table(*view));
  return 0;
}

// -- an episode or a turn -----------------------------------------------------------------------

json turn_json(wire::TurnRecord::Reader turn, const artifact_store& artifacts) {
  auto result = kernelmill::to_json(capnp::DynamicStruct::Reader{turn});
  result["prompt"] = json::array();
  for (auto part : turn.getPrompt())
    result["prompt"].push_back({{"role", std::string{part.getRole()}},
                                {"content", stored_text(artifacts.text(part.getContent()))}});
  result["completion"]["text"] = stored_text(artifacts.text(turn.getCompletion().getText()));
  result["candidate"] = stored_text(artifacts.candidate(turn));
  result["feedback"] = stored_text(artifacts.text(turn.getFeedback()));
  auto calls = turn.getCalls();
  for (unsigned i = 0; i < calls.size(); ++i) {
    result["calls"][i]["arguments"] = stored_text(artifacts.text(calls[i].getArguments()));
    result["calls"][i]["observation"] = stored_text(artifacts.text(calls[i].getObservation()));
  }
  auto reports = turn.getReports();
  for (unsigned i = 0; i < reports.size(); ++i)
    result["reports"][i]["text"] = stored_text(artifacts.text(reports[i].getText()));
  auto nodes = turn.getCandidates();
  for (unsigned i = 0; i < nodes.size(); ++i) {
    result["candidates"][i]["source"] = stored_text(artifacts.text(nodes[i].getSource()));
    result["candidates"][i]["patch"] = stored_text(artifacts.text(nodes[i].getPatch()));
  }
  return result;
}

std::string section(const std::string& title, const std::string& text, bool colour) {
  if (text.empty()) return {};
  return cli::paint(colour, cli::colour::bold, "--- " + title + " ---") + "\n" + text +
         (text.ends_with("\n") ? "" : "\n") + "\n";
}

/// Nothing where the server told no ids.
std::string tokens_text(wire::Completion::Reader x) {
  if (x.getTokenIds().size() == 0) return {};
  auto audit = x.getAudit();
  auto state = audit.getState();
  auto result =
      fmt::format("{} of prompt, {} sampled, {}", x.getPromptTokenIds().size(),
                  x.getTokenIds().size(), enum_name(capnp::DynamicEnum{std::move(state)}));
  if (audit.getState() == wire::TokenState::BRANCH)
    result += fmt::format(" at {} of the {} that were kept", audit.getPosition(), audit.getKept());
  result += std::string{"; by "} + cli::clean(x.getRoute().cStr());
  for (auto span : x.getWeightVersions())
    result += fmt::format("\nweights {} [{}, {})", cli::clean(span.getVersion().cStr()),
                          span.getStart(), span.getEnd());
  return result;
}

/// The texts themselves are for --json.
std::string reports_text(wire::TurnRecord::Reader turn, const artifact_store& artifacts) {
  std::string result;
  for (auto x : turn.getReports())
    result += fmt::format("{} of the {}, {} bytes\n", cli::clean(x.getName().cStr()),
                          x.getTool().cStr(), stored_text(artifacts.text(x.getText())).size());
  return result;
}

/// Those that the prompt or a query of its tools showed.
std::string examples_text(wire::TurnRecord::Reader turn) {
  std::string result;
  for (auto id : turn.getExamples()) result += cli::clean(id.cStr()) + "\n";
  return result;
}

std::string turn_text(wire::TurnRecord::Reader turn, const artifact_store& artifacts, bool colour) {
  auto e = turn.getEpisode();
  auto result =
      cli::paint(colour, cli::colour::bold,
                 fmt::format("turn g{}.e{}.t{}", e.getGroup(), e.getMember(), turn.getTurn())) +
      fmt::format("  {}  {}\n\n", e.getTask().cStr(), turn.getTransition().cStr());
  for (auto part : turn.getPrompt())
    result += section(std::string{"prompt: "} + part.getRole().cStr(),
                      stored_text(artifacts.text(part.getContent())), colour);
  result += section("examples", examples_text(turn), colour);
  result +=
      section("completion", stored_text(artifacts.text(turn.getCompletion().getText())), colour);
  result += section("tokens", tokens_text(turn.getCompletion()), colour);
  result += section("calls", calls_table(turn, artifacts), colour);
  if (turn.getVerdict().getOutcome() == wire::Outcome::OPEN)
    result += section("verdict", "open: the turn asked for no verdict", colour);
  else
    result += section("verdict", verdict_text(turn.getFacts(), turn.getVerdict(), colour), colour);
  result += section("reward", parts_table(turn.getVerdict()), colour);
  result += section("profile", profile_text(turn.getFacts().getProfile()), colour);
  result += section("reports", reports_text(turn, artifacts), colour);
  result += section("feedback", stored_text(artifacts.text(turn.getFeedback())), colour);
  return result;
}

json episode_json(const stored_episode& x, const artifact_store& artifacts) {
  json result;
  result["turns"] = json::array();
  for (const auto& record : x.turns) {
    auto opened = record.open();
    result["turns"].push_back(turn_json(opened->getTurn(), artifacts));
  }
  result["parts"] = part_sums(x);
  result["evidence"] = evidence_json(evidence_of_episode(x));
  result["end"] = nullptr;
  if (x.end) {
    auto opened = x.end->open();
    result["end"] = kernelmill::to_json(capnp::DynamicStruct::Reader{opened->getEpisode()});
  }
  return result;
}

std::string end_text(wire::EpisodeRecord::Reader end) {
  std::string returns, reasons;
  for (auto r : end.getReturns()) returns += " " + return_text(r);
  for (auto r : end.getReadiness().getReasons()) reasons += "\n  " + cli::clean(r.cStr());
  return fmt::format(
      "{} ({}), returns{}\n{}data label: {}{}\n", enum_name(capnp::DynamicEnum{end.getOutcome()}),
      end.getStopReason().cStr(), returns, tool_end_text(end),
      label_text(enum_name(capnp::DynamicEnum{end.getReadiness().getKind()})), reasons);
}

/// One call of a turn, whole.
expected<int> show_call(const invocation& in, const std::vector<Message<wire::Record>>& turns,
                        const artifact_store& artifacts) {
  if (turns.size() != 1)
    return configuration_error("usage",
                               "failed to show a call: '" + in.value("WHAT") + "' is not one turn",
                               "name a turn as RUN/g3.e1.t2");
  auto opened = turns.front().open();
  auto turn = opened->getTurn();
  auto calls = turn.getCalls();
  auto number = in.integer("--call", 0, std::numeric_limits<int32_t>::max());
  KM_TRY(number);
  if (static_cast<uint64_t>(*number) >= calls.size())
    return configuration_error("not_found",
                               fmt::format("failed to show call {}: the turn has {}", *number,
                                           counted(calls.size(), "call")),
                               "`kernelmill show " + in.value("WHAT") + "` lists them from 0");
  auto which = static_cast<unsigned>(*number);
  if (in.json)
    cli::print_json(turn_json(turn, artifacts)["calls"][which]);
  else
    cli::print(call_text(calls[which], artifacts, in.colour_out));
  return 0;
}

json readiness_of(const stored_episode& x) {
  if (!x.end) return nullptr;
  auto opened = x.end->open();
  auto readiness = opened->getEpisode().getReadiness();
  auto kind = readiness.getKind();
  json result = {{"kind", enum_name(capnp::DynamicEnum{std::move(kind)})},
                 {"reasons", json::array()}};
  for (auto reason : readiness.getReasons()) result["reasons"].push_back(reason.cStr());
  return result;
}

/// One part of the only turn of `x`. `name` is how users call it.
expected<int> show_section(const invocation& in, const stored_episode& x, const std::string& name,
                           const episode_evidence& evidence) {
  auto opened = x.turns.front().open();
  sectioned_turn turn{opened->getTurn(), name, evidence, readiness_of(x)};
  const auto& section = in.value("--section");
  if (in.json)
    cli::print_json(section_json(section, turn));
  else
    cli::print(section_text(section, turn));
  return 0;
}

expected<int> show_episode(const invocation& in, const place& at, const std::string& directory) {
  auto from = open_for_reading(at.run);
  KM_TRY(from);
  auto x = read_episode(*from, at.run.name, at.name.group, *at.name.member);
  KM_TRY(x);
  auto evidence = evidence_of_episode(*x); // of all its turns
  if (at.name.turn)
    std::erase_if(x->turns, [&](const auto& record) {
      return record.open()->getTurn().getTurn() != *at.name.turn;
    });
  if (x->turns.empty() && (at.name.turn || !x->end))
    return configuration_error(
        "not_found", "failed to find '" + in.value("WHAT") + "': nothing of that name is stored",
        "`kernelmill show " + directory + "` lists what is there");
  artifact_store artifacts{at.run.artifacts};
  if (in.has("--call")) return show_call(in, x->turns, artifacts);
  if (in.has("--section") && at.name.turn)
    return show_section(in, *x,
                        directory + "/" +
                            short_name({{}, {}, at.name.group, *at.name.member}, *at.name.turn),
                        evidence);
  if (in.json) {
    auto document = episode_json(*x, artifacts);
    cli::print_json(at.name.turn ? document["turns"][0] : document);
    return 0;
  }
  for (const auto& record : x->turns) {
    auto opened = record.open();
    cli::print(turn_text(opened->getTurn(), artifacts, in.colour_out));
  }
  if (!at.name.turn)
    cli::print(section("reward of the episode", part_sums_table(*x), in.colour_out));
  if (x->end && !at.name.turn)
    cli::print(section(
        "episode", end_text(x->end->open()->getEpisode()) + evidence_text(evidence_of_episode(*x)),
        in.colour_out));
  return 0;
}

// -- a candidate --------------------------------------------------------------------------------

struct candidate_hit {
  std::string name; ///< "RUN/g3.e1.t2"
  std::string sha256;
  std::string source;
};

expected<std::vector<candidate_hit>> find_candidate(const run_directory& run,
                                                    const std::string& prefix) {
  auto from = open_for_reading(run);
  KM_TRY(from);
  artifact_store artifacts{run.artifacts};
  std::vector<candidate_hit> hits;
  auto done = for_each_group(*from, run.name, [&](const stored_group& group) -> expected<void> {
    for (const auto& episode : group.episodes)
      for (const auto& record : episode.turns) {
        auto opened = record.open();
        auto turn = opened->getTurn();
        std::string sha256 = turn.getCandidateSha256();
        if (!sha256.starts_with(prefix)) continue;
        hits.push_back(
            {fmt::format("{}/g{}.e{}.t{}", run.name, group.group, episode.member, turn.getTurn()),
             sha256, stored_text(artifacts.candidate(turn))});
      }
    return {};
  });
  KM_TRY(done);
  return hits;
}

expected<int> show_candidate(const invocation& in, const std::string& prefix) {
  std::vector<candidate_hit> hits;
  for (const auto& name : list_runs(in.value("--root"))) {
    auto run = find_run(name, in.value("--root"));
    if (!run) continue;
    auto found = find_candidate(*run, prefix);
    KM_TRY(found);
    hits.insert(hits.end(), found->begin(), found->end());
  }
  if (hits.empty())
    return configuration_error("not_found",
                               "failed to find a candidate whose SHA-256 begins with " + prefix,
                               "`kernelmill show RUN` lists what is stored");
  for (const auto& hit : hits)
    if (hit.sha256 != hits.front().sha256)
      return configuration_error("ambiguous",
                                 "failed to choose a candidate: " + prefix + " begins " +
                                     hits.front().sha256 + " and " + hit.sha256,
                                 "give more digits");
  if (in.json) {
    json document = {{"candidate_sha256", hits.front().sha256},
                     {"turns", json::array()},
                     {"source", hits.front().source}};
    for (const auto& hit : hits) document["turns"].push_back(hit.name);
    cli::print_json(document);
    return 0;
  }
  for (const auto& hit : hits) cli::print("// " + hit.name + "\n");
  cli::print(hits.front().source + (hits.front().source.ends_with("\n") ? "" : "\n"));
  return 0;
}

bool is_hash_prefix(const std::string& x) {
  return x.size() >= 6 && x.size() <= 64 &&
         x.find_first_not_of("0123456789abcdef") == std::string::npos;
}

expected<int> show_place(const invocation& in, const place& at, const std::string& directory) {
  return at.whole_run || !at.name.member ? show_run(in, at, directory)
                                         : show_episode(in, at, directory);
}

expected<int> show(const invocation& in) {
  const auto& what = in.value("WHAT");
  auto named = parse_name(what.substr(what.find_last_of('/') + 1));
  if (in.has("--section") && (!named || !named->turn))
    return configuration_error("usage", "failed to show a section: '" + what + "' names no turn",
                               "name a turn as RUN/g3.e1.t2");
  if (in.has("--call") && (!named || !named->turn))
    return configuration_error("usage", "failed to show a call: '" + what + "' names no turn",
                               "name a turn as RUN/g3.e1.t2");
  if (in.has("--call") && in.has("--section"))
    return configuration_error("usage", "failed to show a turn: --call and --section are given",
                               "keep one of them");
  if (asks_head(in)) {
    // A table of episodes needs no texts.
    auto slash = what.find_last_of('/');
    auto name = slash == std::string::npos ? std::nullopt : parse_name(what.substr(slash + 1));
    auto remote = remote_run::fetch(in, what, name && name->member);
    KM_TRY(remote);
    return show_place(in, (*remote)->where(), (*remote)->directory());
  }
  auto at = locate(what, in.value("--root"));
  if (!at && is_hash_prefix(what)) return show_candidate(in, what);
  KM_TRY(at);
  return show_place(in, *at, at->run.path);
}

} // namespace

cli::command show_row() {
  return {
      "show",
      "Shows a run, a group, an episode, a turn or a candidate.",
      "kernelmill show runs/first\nkernelmill show runs/first/g3.e1.t2\nkernelmill show 3fa9c1d2\n"
      "kernelmill show runs/first/g3.e1.t2 --section timing\n"
      "kernelmill show first --head 10.0.0.5\nkernelmill show first/g3.e1.t2 --call 0",
      "A candidate's SHA-256 is searched below --root only, not at a head.",
      {{"WHAT",
        "RUN, RUN/g3, RUN/g3.e1, RUN/g3.e1.t2, RUN/best, or the first digits of a candidate's "
        "SHA-256.",
        true,
        false,
        completes::run,
        {}}},
      with_view_options({{"--call",
                          "N",
                          "Of a turn, shows its tool call N (from 0) as a whole.",
                          "",
                          false,
                          {},
                          nothing},
                         {"--section", "NAME", "Of a turn, shows this part of its record alone.",
                          "", false, turn_sections(), nothing}}),
      show};
}

} // namespace kernelmill::commands
