#include "launch/commands/view/remote_run.hpp"

#include <cstdlib>
#include <filesystem>

#include "launch/analysis/watch/records.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::commands {

namespace fs = std::filesystem;

namespace {

expected<run_directory> lay_out(const std::string& folder, watch::remote_records& x) {
  // Where the records lie there is not where they lie here.
  for (const auto* key : {"schema_version", "run", "store"}) x.manifest.erase(key);
  return create_run({folder + "/" + x.run, x.run, {}}, x.config, x.manifest);
}

} // namespace

remote_run::~remote_run() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

expected<std::unique_ptr<remote_run>> remote_run::fetch(const invocation& in,
                                                        const std::string& what, bool texts) {
  auto views = view_client::open(in);
  KM_TRY(views);
  std::unique_ptr<remote_run> result{new remote_run};
  auto pattern = (fs::temp_directory_path() / "kernelmill-far-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return tl::unexpected<error>{file_error(errno, "create", pattern)};
  result->folder_ = pattern;
  std::optional<store> records;
  std::optional<artifact_store> artifacts;
  for (std::optional<uint64_t> from = 0; from;) {
    auto document = views->ask("records", {{"what", what}, {"from", *from}, {"texts", texts}});
    KM_TRY(document);
    auto part = watch::read_remote_records(*document);
    KM_TRY(part);
    if (!records) {
      auto run = lay_out(result->folder_, *part);
      KM_TRY(run);
      auto opened = store::open({.directory = run->store, .durable = false});
      KM_TRY(opened);
      records.emplace(std::move(*opened));
      artifacts.emplace(run->artifacts);
      result->place_.run = *run;
      result->directory_ = part->directory;
    }
    KM_TRY(records->commit(part->records));
    for (const auto& [sha256, bytes] : part->texts) KM_TRY(artifacts->put(sha256, bytes));
    from = part->next;
  }
  auto slash = what.find_last_of('/');
  auto name = slash == std::string::npos ? std::nullopt : parse_name(what.substr(slash + 1));
  result->place_.whole_run = !name;
  if (name) result->place_.name = *name;
  return result;
}

} // namespace kernelmill::commands
