#include "launch/analysis/bundle/make_bundle.hpp"

#include <set>

#include "messages/base/digest.hpp"
#include "messages/json.hpp"
#include "storage/bundle/proof.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::bundles {

namespace {

std::string name_of_part(const name_parts& x) {
  auto result = "g" + std::to_string(x.group);
  if (x.member) result += ".e" + std::to_string(*x.member);
  if (x.turn) result += ".t" + std::to_string(*x.turn);
  return result;
}

/// One pass over what is asked for.
class making {
public:
  making(const bundle_request& what, bundle_writer to)
      : what_(what), to_(std::move(to)), gate_({what.may}) {
    whole_.what = what.facts.run;
    if (what.part) whole_.what += "/" + name_of_part(*what.part);
    whole_.status = "open";
  }

  expected<made_bundle> make() {
    if (!what_.part) KM_TRY(take_sessions());
    if (what_.part) {
      auto group = read_group(*what_.lineage, what_.facts.run, what_.part->group);
      KM_TRY(group);
      KM_TRY(admit(*group));
    } else {
      KM_TRY(for_each_group(*what_.lineage, what_.facts.run,
                            [&](const stored_group& x) { return admit(x); }));
    }
    if (turns_ == 0)
      return configuration_error("not_found",
                                 "failed to bundle " + whole_.what + ": it has no committed turn",
                                 "`kernelmill show " + what_.facts.run + "` lists what is stored");
    whole_.episodes = episodes_;
    whole_.turns = turns_;
    if (!of_turn()) KM_TRY(put_whole(whole_, what_.facts, put()));
    if (what_.proof) KM_TRY(add_artifacts(to_, artifacts_, *what_.artifacts));
    made_bundle result{whole_.what, {}, to_.files().size(), to_.bytes(), episodes_, turns_};
    auto digest = to_.finish(list_facts(), what_.key);
    KM_TRY(digest);
    result.list_sha256 = std::move(*digest);
    return result;
  }

private:
  bool of_turn() const { return what_.part && what_.part->turn; }

  file_put put() {
    return
        [this](const std::string& path, const std::string& bytes) { return to_.add(path, bytes); };
  }

  json list_facts() const {
    json result = {{"schema_version", bundle_schema_version},
                   {"kind", "kernelmill bundle"},
                   {"form", what_.proof ? "proof" : "run"},
                   {"of", whole_.what},
                   {"run", what_.facts.run},
                   {"made_by", "kernelmill " + what_.facts.program},
                   {"signed", what_.key != nullptr},
                   {"episodes", episodes_},
                   {"turns", turns_}};
    // A proof holds them as files.
    if (!what_.proof) {
      result["records"] = records_;
      result["artifacts"] = artifacts_;
    }
    return result;
  }

  expected<void> keep(const Message<wire::Record>& record) {
    auto opened = record.open();
    auto name = name_of(*opened);
    for (auto& sha256 : artifacts_of(*opened)) artifacts_.insert(sha256);
    std::string_view bytes{record.data(), record.size()};
    if (what_.proof) return to_.add(record_path(name), bytes);
    records_.push_back({{"name", name}, {"size", bytes.size()}, {"sha256", sha256_hex(bytes)}});
    return {};
  }

  expected<void> take_sessions() {
    expected<void> kept;
    auto ok = what_.lineage->scan_openings(what_.facts.run, [&](wire::Record::Reader record) {
      kept = keep(copy_of<wire::Record>(record));
      auto x = record.getRun();
      bool begins = x.getState() == "running";
      whole_.status = begins ? "open" : x.getState().cStr();
      whole_.events.push_back(
          {{"ts", time_or_nothing(x.getAt())},
           {"scope", "run"},
           {"kind", begins ? "started" : "completed"},
           {"payload", {{"opening", x.getOpening()}, {"state", x.getState().cStr()}}}});
      return kept.has_value();
    });
    KM_TRY(ok);
    return kept;
  }

  // A bundle is of all that it is asked for, or it is not made.
  expected<void> admit(const stored_group& group) {
    auto admitted = gate_.admit(*what_.may, group);
    if (!admitted)
      return tl::unexpected<error>{
          exports::to_error(admitted.error(), "failed to make a bundle of " + whole_.what)};
    return take_group(*admitted);
  }

  expected<void> take_group(const exports::admitted_group& group) {
    for (const auto& episode : group->episodes)
      if (!what_.part || !what_.part->member || *what_.part->member == episode.member)
        KM_TRY(take_episode(group->group, episode));
    bool all = !what_.part || !what_.part->member;
    return all && group->end ? keep(*group->end) : expected<void>{};
  }

  expected<void> take_episode(uint32_t group, const stored_episode& episode) {
    std::optional<std::string> parent;
    std::string parent_code, parent_sha256;
    bool any = false;
    auto prompt = first_prompt(episode);
    KM_TRY(prompt);
    for (const auto& record : episode.turns) {
      auto opened = record.open();
      auto turn = opened->getTurn();
      auto code = what_.artifacts->candidate(turn);
      KM_TRY(code);
      if (!of_turn() || turn.getTurn() == *what_.part->turn) {
        any = true;
        KM_TRY(take_turn(record, turn, *prompt, parent, parent_code, parent_sha256));
      }
      parent = short_name({{}, {}, group, episode.member}, turn.getTurn());
      if (turn.getCandidateSha256().size() == 0) continue;
      parent_code = std::move(*code);
      parent_sha256 = turn.getCandidateSha256().cStr();
    }
    episodes_ += any;
    if (of_turn() || !episode.end) return {};
    auto end = episode.end->open();
    auto x = end->getEpisode();
    whole_.events.push_back({{"ts", time_or_nothing(x.getCommittedAt())},
                             {"scope", "episode"},
                             {"kind", "completed"},
                             {"payload",
                              {{"episode", short_name({{}, {}, group, episode.member})},
                               {"outcome", enum_name(capnp::DynamicEnum{x.getOutcome()})},
                               {"stop_reason", x.getStopReason().cStr()}}}});
    if (what_.part && what_.part->member) whole_.status = "finished";
    return keep(*episode.end);
  }

  expected<std::string> first_prompt(const stored_episode& episode) const {
    if (episode.turns.empty()) return std::string{};
    auto opened = episode.turns.front().open();
    for (auto part : opened->getTurn().getPrompt())
      if (part.getRole() == "user") return what_.artifacts->text(part.getContent());
    return std::string{};
  }

  expected<void> take_turn(const Message<wire::Record>& record, wire::TurnRecord::Reader turn,
                           const std::string& prompt, const std::optional<std::string>& parent,
                           const std::string& parent_code, const std::string& parent_sha256) {
    auto material = material_of(turn, *what_.artifacts);
    KM_TRY(material);
    auto& x = *material;
    x.task_prompt = prompt;
    x.parent = parent;
    x.parent_code = parent_code;
    x.parent_sha256 = parent_sha256;
    auto e = turn.getEpisode();
    auto name = short_name({{}, {}, e.getGroup(), e.getMember()}, turn.getTurn());
    KM_TRY(put_turn(x, what_.facts, of_turn() ? "" : "turns/" + name + "/", put()));
    ++turns_;
    whole_.accepted += turn.getVerdict().getOutcome() == wire::Outcome::ACCEPTED;
    whole_.turn_names.push_back("turns/" + name);
    return keep(record);
  }

  const bundle_request& what_;
  bundle_writer to_;
  exports::licence_gate gate_;
  whole_facts whole_;
  json records_ = json::array();
  std::set<std::string> artifacts_;
  uint64_t episodes_ = 0, turns_ = 0;
};

} // namespace

expected<made_bundle> make_bundle(const bundle_request& what) {
  auto to = what.folder ? bundle_writer::create_folder(what.out) : bundle_writer::create(what.out);
  KM_TRY(to);
  return making{what, std::move(*to)}.make();
}

} // namespace kernelmill::bundles
