#include "storage/bundle/proof.hpp"

#include <kj/exception.h>

#include "messages/base/digest.hpp"
#include "messages/contents.hpp"
#include "messages/identity.hpp"

namespace kernelmill::bundles {

namespace {

constexpr size_t named_problems = 20;
constexpr std::string_view records_folder = "records/";
constexpr std::string_view artifacts_folder = "artifacts/";

std::string_view view_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

episode_id id_of(wire::EpisodeRef::Reader x) {
  return {x.getRun().cStr(), x.getTask().cStr(), x.getGroup(), x.getMember()};
}

const char* run_of(wire::Record::Reader x) {
  switch (x.which()) {
    case wire::Record::TURN: return x.getTurn().getEpisode().getRun().cStr();
    case wire::Record::EPISODE: return x.getEpisode().getEpisode().getRun().cStr();
    case wire::Record::GROUP: return x.getGroup().getRun().cStr();
    case wire::Record::RUN: return x.getRun().getRun().cStr();
  }
  return "";
}

} // namespace

std::string name_of(wire::Record::Reader x) {
  switch (x.which()) {
    case wire::Record::TURN:
      return short_name(id_of(x.getTurn().getEpisode()), x.getTurn().getTurn());
    case wire::Record::EPISODE: return short_name(id_of(x.getEpisode().getEpisode()));
    case wire::Record::GROUP: return "g" + std::to_string(x.getGroup().getGroup());
    case wire::Record::RUN: break;
  }
  return "run." + std::to_string(x.getRun().getOpening()) +
         (x.getRun().getState() == "running" ? ".begin" : ".end");
}

std::set<std::string> artifacts_of(wire::Record::Reader x) {
  std::set<std::string> result;
  if (!x.isTurn()) return result;
  for_each_content(x.getTurn(), [&](wire::Content::Reader content, const char*) {
    if (content.isArtifact()) result.insert(content.getArtifact().getSha256().cStr());
  });
  return result;
}

std::string record_path(const std::string& name) {
  return std::string{records_folder} + name + ".capnp";
}

std::string artifact_path(const std::string& sha256) {
  return std::string{artifacts_folder} + sha256.substr(0, 2) + "/" + sha256.substr(2);
}

expected<void> add_artifacts(bundle_writer& to, const std::set<std::string>& wanted,
                             const artifact_store& from) {
  for (const auto& sha256 : wanted) {
    auto bytes = from.get(sha256);
    KM_TRY(bytes);
    KM_TRY(to.add(artifact_path(sha256), *bytes));
  }
  return {};
}

// -- checking -----------------------------------------------------------------------------------

void proof_check::say(const std::string& path, const std::string& what) {
  if (wrong_.size() < named_problems) wrong_.push_back(path + ": " + what);
}

void proof_check::take(const listed_file& file, std::string_view bytes) {
  if (file.path.starts_with(records_folder)) take_record(file.path, bytes);
  if (file.path.starts_with(artifacts_folder)) take_artifact(file.path, bytes);
}

void proof_check::take_record(const std::string& path, std::string_view bytes) {
  ++records_;
  auto message = Message<wire::Record>::from_bytes(bytes.data(), bytes.size());
  if (!message) return say(path, "it is no record");
  try {
    auto opened = message->open();
    wire::Record::Reader x = *opened;
    if (record_path(name_of(x)) != path) say(path, "it is the record of " + name_of(x));
    runs_.try_emplace(run_of(x), path);
    for (const auto& sha256 : artifacts_of(x)) wanted_.try_emplace(sha256, path);
    if (x.isTurn()) take_turn(path, x.getTurn());
  } catch (const kj::Exception&) {
    say(path, "it is no record");
  }
}

void proof_check::take_turn(const std::string& path, wire::TurnRecord::Reader turn) {
  ++turns_;
  if (view_of(turn.getTurnId()) != turn_id(id_of(turn.getEpisode()), turn.getTurn()))
    say(path, "its turn id is not the hash of run, task, episode and turn");
  for (auto node : turn.getCandidates()) {
    auto source = node.getSource();
    auto sha256 = view_of(node.getSha256());
    if (source.isArtifact()
            ? view_of(source.getArtifact().getSha256()) != sha256
            : !source.isInline() || sha256_hex(view_of(source.getInline())) != sha256)
      say(path, "the source of a candidate of its graph has another SHA-256 than it says");
  }
  auto want = view_of(turn.getCandidateSha256());
  if (want.empty()) return;
  auto candidate = turn.getCandidate();
  auto differs = [&] { say(path, "its candidate has another SHA-256 than it says"); };
  if (candidate.isArtifact()) {
    if (view_of(candidate.getArtifact().getSha256()) != want) differs();
  } else if (candidate.isInline()) {
    if (sha256_hex(view_of(candidate.getInline())) != want) differs();
  } else if (auto text = turn.getCompletion().getText(); text.isInline()) {
    auto source = part_of(view_of(text.getInline()), candidate.getOfCompletion());
    if (!source || sha256_hex(*source) != want) differs();
  } else if (text.isArtifact()) {
    auto span = candidate.getOfCompletion();
    parts_.emplace(text.getArtifact().getSha256().cStr(),
                   part{span.getBegin(), span.getSize(), std::string{want}, path});
  } else {
    differs();
  }
}

void proof_check::take_artifact(const std::string& path, std::string_view bytes) {
  auto sha256 = sha256_hex(bytes);
  if (artifact_path(sha256) != path) return say(path, "its SHA-256 is not its name");
  there_.insert(sha256);
  auto [begin, end] = parts_.equal_range(sha256);
  for (auto i = begin; i != end; ++i) {
    const auto& x = i->second;
    bool inside = x.begin <= bytes.size() && x.size <= bytes.size() - x.begin;
    if (!inside || sha256_hex(bytes.substr(x.begin, x.size)) != x.sha256)
      say(x.record, "its candidate has another SHA-256 than it says");
  }
}

std::vector<std::string> proof_check::finish(const std::string& run) {
  for (const auto& [name, record] : runs_)
    if (name != run) say(record, "it is of another run than the bundle");
  for (const auto& [sha256, record] : wanted_)
    if (!there_.contains(sha256)) say(record, "it names an artifact that is missing, " + sha256);
  return wrong_;
}

} // namespace kernelmill::bundles
