#include "launch/analysis/watch/records.hpp"
#include "messages/base/json_value.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <kj/exception.h>

#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "messages/base/base64.hpp"
#include "messages/contents.hpp"
#include "messages/identity.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::watch {

namespace {

constexpr size_t most_part_bytes = size_t{8} << 20;

expected<std::string> bytes_of(const std::string& text) {
  if (auto result = from_base64(text)) return std::move(*result);
  return infrastructure_error("malformed_message", "failed to read a record from afar: it has "
                                                   "a byte that is none of base64");
}

template <class T>
std::string bytes64(const Message<T>& x) {
  return to_base64({x.data(), x.size()});
}

// In place of a text: that there was one is evidence.
constexpr const char* left_out = "...";

void leave_mark(wire::Content::Builder x) {
  if (x.isInline() && x.getInline().size() > 0) x.setInline(left_out);
}

// Tables show little of a record, so the texts are left out.
Message<wire::Record> without_texts(wire::TurnRecord::Reader turn) {
  auto blank = build<wire::Record>([&](wire::Record::Builder record) {
    record.setTurn(turn);
    auto to = record.getTurn();
    to.initPrompt(std::min(turn.getPrompt().size(), 1U));
    for_each_content(to, [](wire::Content::Builder x, const char*) { leave_mark(x); });
    auto completion = to.getCompletion();
    completion.initPromptTokenIds(0);
    completion.initTokenIds(0);
    completion.initLogprobs(0);
    to.getFacts().getBuild().setLog(turn.getFacts().getBuild().getLog().size() > 0 ? left_out : "");
    to.getFacts().getEvaluation().setOutput("");
    for (auto call : to.getCalls())
      if (call.hasFacts()) call.initFacts();
  });
  // A copy has no holes where the texts were.
  auto view = blank.open();
  return build<wire::Record>(
      [&](wire::Record::Builder record) { record.setTurn(view->getTurn()); });
}

class part_builder {
public:
  part_builder(const artifact_store& artifacts, bool whole) : artifacts_(artifacts), texts_(whole) {
    // nop
  }

  void add(const Message<wire::Record>& record) {
    auto text = bytes64(record);
    size_ += text.size();
    records.push_back(std::move(text));
  }

  expected<void> add_turn(const Message<wire::Record>& record) {
    auto view = record.open();
    auto turn = view->getTurn();
    if (!texts_) {
      add(without_texts(turn));
      return {};
    }
    add(record);
    for_each_content(turn, [&](wire::Content::Reader x, const char*) { add_text(x); });
    return {};
  }

  expected<void> add_episode(const stored_episode& x) {
    for (const auto& record : x.turns) KM_TRY(add_turn(record));
    if (x.end) add(*x.end);
    return {};
  }

  bool is_full() const { return size_ >= most_part_bytes; }

  json records = json::array();
  json texts = json::array();

private:
  // One that is lost is told as lost there.
  void add_text(wire::Content::Reader content) {
    if (!content.isArtifact()) return;
    std::string sha256 = content.getArtifact().getSha256();
    if (!told_.insert(sha256).second) return;
    auto bytes = artifacts_.get(sha256);
    if (!bytes) return;
    auto text = to_base64(*bytes);
    size_ += text.size();
    texts.push_back({{"sha256", sha256}, {"bytes", std::move(text)}});
  }

  const artifact_store& artifacts_;
  bool texts_;
  size_t size_ = 0;
  std::set<std::string> told_;
};

/// The groups from `first` on; the number of the first that did not go in.
expected<std::optional<uint64_t>> add_groups(part_builder& to, const store& from,
                                             const std::string& run, uint64_t first) {
  std::optional<uint64_t> next;
  auto ok = for_each_group(from, run, [&](const stored_group& group) -> expected<void> {
    if (group.group < first || next) return {};
    if (to.is_full()) {
      next = group.group;
      return {};
    }
    for (const auto& episode : group.episodes) KM_TRY(to.add_episode(episode));
    if (group.end) to.add(*group.end);
    return {};
  });
  KM_TRY(ok);
  return next;
}

expected<void> add_named(part_builder& to, const store& from, const std::string& run,
                         const name_parts& name) {
  if (name.member) {
    auto x = read_episode(from, run, name.group, *name.member);
    KM_TRY(x);
    return to.add_episode(*x);
  }
  auto group = read_group(from, run, name.group);
  KM_TRY(group);
  for (const auto& episode : group->episodes) KM_TRY(to.add_episode(episode));
  if (group->end) to.add(*group->end);
  return {};
}

} // namespace

expected<json> records_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what", "from", "texts"}));
  auto at = locate(in, text_in(query, "what"));
  KM_TRY(at);
  const auto& [run, rest] = *at;
  auto name = parse_name(rest);
  auto from = open_store_of(in, run);
  KM_TRY(from);
  auto config = read_json(run.config_file());
  KM_TRY(config);
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  artifact_store artifacts{run.artifacts};
  part_builder part{artifacts, query.value("texts", false)};
  json next = nullptr;
  try {
    auto start = count_in(query, "from", 0);
    if (start == 0) {
      auto own = (*from)->scan_openings(run.name, [&](wire::Record::Reader x) {
        part.add(build<wire::Record>([&](wire::Record::Builder to) { to.setRun(x.getRun()); }));
        return true;
      });
      KM_TRY(own);
    }
    if (name) {
      KM_TRY(add_named(part, **from, run.name, *name));
    } else {
      auto more = add_groups(part, **from, run.name, start);
      KM_TRY(more);
      if (*more) next = **more;
    }
  } catch (const kj::Exception& e) {
    return infrastructure_error("store_damaged", std::string{"failed to read a record: "} +
                                                     e.getDescription().cStr());
  }
  return json{{"run", run.name},        {"directory", run.path},   {"config", *config},
              {"manifest", *manifest},  {"records", part.records}, {"texts", part.texts},
              {"next", std::move(next)}};
}

expected<remote_records> read_remote_records(const json& document) {
  remote_records result;
  try {
    result.run = document.at("run").get<std::string>();
    result.directory = document.at("directory").get<std::string>();
    result.config = document.at("config");
    result.manifest = document.at("manifest");
    for (const auto& x : document.at("records")) {
      auto bytes = bytes_of(x.get<std::string>());
      KM_TRY(bytes);
      auto record = Message<wire::Record>::from_bytes(bytes->data(), bytes->size());
      KM_TRY(record);
      result.records.push_back(std::move(*record));
    }
    for (const auto& x : document.at("texts")) {
      auto bytes = bytes_of(x.at("bytes").get<std::string>());
      KM_TRY(bytes);
      result.texts.emplace_back(x.at("sha256").get<std::string>(), std::move(*bytes));
    }
    if (const auto& next = document.at("next"); !next.is_null()) result.next = next.get<uint64_t>();
  } catch (const nlohmann::json::exception& e) {
    return infrastructure_error("malformed_message",
                                std::string{"failed to read records from afar: "} + e.what());
  }
  return result;
}

} // namespace kernelmill::watch
