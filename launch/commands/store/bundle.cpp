// `kernelmill bundle`: what is stored of a run as one file that others can check.

#include <filesystem>

#include <fmt/format.h>

#include "launch/analysis/bundle/make_bundle.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/run_bundle.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/bundle/proof.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// -- make ---------------------------------------------------------------------------------------

/// --full is gpu_rl's name of a proof: all that there is.
std::string bundle_form(const invocation& in) {
  return in.has("--full") ? "proof" : in.value("--form");
}

expected<bundles::key_ptr> signing_key(const invocation& in) {
  if (in.has("--key")) return bundles::read_private_key(in.value("--key"));
  if (bundle_form(in) == "proof")
    return configuration_error("usage", "failed to run 'bundle make': a proof is signed",
                               "give --key FILE; `kernelmill bundle keygen --out FILE` makes one");
  return bundles::key_ptr{};
}

/// A bundle holds prompts and answers, and is made to be passed on.
expected<exports::permits> passing_on(const invocation& in, const run_directory& run) {
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  return permits_of(run, *licences, purpose::share, *accepted);
}

expected<int> bundle_make(const invocation& in) {
  auto at = locate(in.value("WHAT"), in.value("--root"));
  KM_TRY(at);
  const auto& out = in.value("--out");
  std::error_code status;
  if (!in.has("--force") && std::filesystem::exists(out, status))
    return configuration_error("bundle_exists", "failed to write " + out + ": the file is there",
                               "name another file, or replace it with --force");
  auto key = signing_key(in);
  KM_TRY(key);
  cli::show_activity("reading what is stored");
  auto made = make_run_bundle(in, *at, {out, false, bundle_form(in) == "proof", key->get()});
  KM_TRY(made);
  auto by = *key ? bundles::public_hex(**key) : std::string{};
  if (in.json)
    cli::print_json({{"schema_version", bundles::bundle_schema_version},
                     {"of", made->what},
                     {"form", bundle_form(in)},
                     {"file", out},
                     {"files", made->files},
                     {"bytes", made->bytes},
                     {"episodes", made->episodes},
                     {"turns", made->turns},
                     {"list_sha256", made->list_sha256},
                     {"public_key", by.empty() ? json(nullptr) : json(by)}});
  else
    cli::print(fmt::format("wrote {}: {} of {}, {}, {} unpacked\n{}\n", out,
                           counted(made->turns, "turn"), made->what, counted(made->files, "file"),
                           cli::format_bytes(static_cast<double>(made->bytes)),
                           by.empty() ? "not signed" : "signed by " + by));
  return cli::exit_ok;
}

// -- verify -------------------------------------------------------------------------------------

struct verification {
  bundles::read_bundle bundle;
  std::vector<std::string> wrong; ///< of records and artifacts
  uint64_t turns = 0, records = 0, artifacts = 0;
  bool good() const { return bundle.damaged.empty() && wrong.empty(); }
};

expected<verification> verify_file(const std::string& path, evp_pkey_st* trusted) {
  verification result;
  bundles::proof_check check;
  auto bundle = bundles::read(path, {}, trusted,
                              [&](const auto& file, std::string_view bytes) -> expected<void> {
                                check.take(file, bytes);
                                return {};
                              });
  KM_TRY(bundle);
  result.bundle = std::move(*bundle);
  auto run = result.bundle.list.value("run", json{});
  // A damaged file was not handed on, so what it lacks is no news.
  if (result.bundle.damaged.empty())
    result.wrong = check.finish(run.is_string() ? run.get<std::string>() : std::string{});
  result.turns = check.turns();
  result.records = check.records();
  result.artifacts = check.artifacts();
  return result;
}

std::string signature_text(const bundles::read_bundle& x, bool trusted) {
  if (x.public_key.empty())
    return "it has no signature: this shows that it is whole, and not its author";
  if (trusted) return "signed by the key that you named, " + x.public_key;
  return "signed by a key that you did not name, " + x.public_key +
         ": this shows that nothing was changed since, and not its author";
}

json to_json(const verification& x, bool trusted, const std::string& path) {
  auto problems = x.bundle.damaged;
  problems.insert(problems.end(), x.wrong.begin(), x.wrong.end());
  return {{"schema_version", bundles::bundle_schema_version},
          {"file", path},
          {"good", x.good()},
          {"of", x.bundle.list.value("of", json{})},
          {"form", x.bundle.list.value("form", json{})},
          {"made_by", x.bundle.list.value("made_by", json{})},
          {"files", x.bundle.files.size()},
          {"bytes", x.bundle.bytes},
          {"turns", x.bundle.list.value("turns", json{})},
          {"records_checked", x.records},
          {"artifacts_checked", x.artifacts},
          {"list_sha256", x.bundle.list_sha256},
          {"public_key", x.bundle.public_key.empty() ? json(nullptr) : json(x.bundle.public_key)},
          {"key_was_named", trusted},
          {"problems", problems}};
}

expected<int> bundle_verify(const invocation& in) {
  bundles::key_ptr trusted;
  if (in.has("--public-key")) {
    auto key = bundles::read_public_key(in.value("--public-key"));
    KM_TRY(key);
    trusted = std::move(*key);
  }
  auto done = verify_file(in.value("FILE"), trusted.get());
  KM_TRY(done);
  auto document = to_json(*done, trusted != nullptr, in.value("FILE"));
  if (in.json) {
    cli::print_json(document);
  } else {
    for (const auto& problem : document["problems"])
      cli::print("DAMAGED " + cli::clean(problem.get<std::string>()) + "\n");
    cli::print(fmt::format("{}: {}, {}{}\n{}\n", done->good() ? "good" : "not good",
                           counted(done->bundle.files.size(), "file"),
                           cli::format_bytes(static_cast<double>(done->bundle.bytes)),
                           done->records > 0 ? fmt::format(", {} and {} checked",
                                                           counted(done->records, "record"),
                                                           counted(done->artifacts, "artifact"))
                                             : std::string{},
                           signature_text(done->bundle, trusted != nullptr)));
  }
  return done->good() ? cli::exit_ok : cli::exit_quality;
}

// -- keygen -------------------------------------------------------------------------------------

expected<int> bundle_keygen(const invocation& in) {
  const auto& path = in.value("--out");
  KM_TRY(bundles::make_key(path));
  auto key = bundles::read_public_key(path + ".pub");
  KM_TRY(key);
  auto hex = bundles::public_hex(**key);
  if (in.json)
    cli::print_json({{"schema_version", bundles::bundle_schema_version},
                     {"private_key", path},
                     {"public_key_file", path + ".pub"},
                     {"public_key", hex}});
  else
    cli::print(fmt::format("wrote {} (keep it) and {}.pub (give it to verifiers)\npublic key {}\n",
                           path, path, hex));
  return cli::exit_ok;
}

} // namespace

expected<bundles::made_bundle> make_run_bundle(const invocation& in, const place& at,
                                               const wanted_bundle& wanted) {
  auto may = passing_on(in, at.run);
  KM_TRY(may);
  auto lineage = open_for_reading(at.run);
  KM_TRY(lineage);
  KM_TRY(check_store_of(at.run, *lineage));
  auto manifest = read_json(at.run.manifest_file());
  KM_TRY(manifest);
  auto config = read_json(at.run.config_file());
  KM_TRY(config);
  artifact_store artifacts{at.run.artifacts};
  bundles::bundle_request what{
      &*lineage,    &artifacts,
      &*may,        {at.run.name, std::move(*manifest), std::move(*config), build_id()},
      std::nullopt, wanted.proof,
      wanted.out,   wanted.folder,
      wanted.key};
  if (!at.whole_run) what.part = at.name;
  return bundles::make_bundle(what);
}

cli::command bundle_make_row() {
  return without_tables(
      {"bundle make",
       "Writes what is stored of a run, an episode or a turn as one file.",
       "kernelmill bundle make runs/first/g3.e1.t2 --out turn.tar.zst\n"
       "kernelmill bundle make runs/first --form proof --key sign.pem --out first.tar.zst",
       "The file is a tar of zstd in the layout of gpu_rl's run bundles; docs/reference/bundles.md "
       "has every file. A\n"
       "proof also has the store's records and the artifacts by hash, and is signed. The same "
       "store gives the same\n"
       "bytes. Addresses of servers and names of keys stay out.",
       {{"WHAT", "RUN, RUN/g3, RUN/g3.e1 or RUN/g3.e1.t2.", true, false, completes::run, {}}},
       {{"--out", "FILE", "The bundle, such as first.tar.zst.", "", true, {}, completes::file},
        {"--form", "FORM", "What is in it.", "run", false, {"run", "proof"}, nothing},
        flag("--full", "All that there is: the same as --form proof."),
        accept_terms_option(),
        {"--key",
         "FILE",
         "Private key of Ed25519 (PEM) that signs it.",
         "",
         false,
         {},
         completes::file},
        flag("--force", "Replaces an existing file."),
        runs_root()},
       bundle_make});
}

cli::command bundle_verify_row() {
  return without_tables(
      {"bundle verify",
       "Checks a bundle, on any machine, without the store.",
       "kernelmill bundle verify first.tar.zst --public-key sign.pem.pub",
       "Every file is compared with the list of hashes, and the list with its signature. Of a "
       "proof, records are read:\n"
       "names, turn ids, hashes of candidates, and that no artifact is missing. Links, absolute "
       "paths, doubles, files\n"
       "that are not listed and streams that unpack to more than they promise are refused. The "
       "key inside of a bundle\n"
       "shows integrity only; name the key to check the signer. Exit code 5: something "
       "was changed; it is named.",
       {{"FILE", "The bundle, or its folder.", true, false, completes::file, {}}},
       {{"--public-key",
         "FILE",
         "The key (PEM) that must have signed it.",
         "",
         false,
         {},
         completes::file}},
       bundle_verify});
}

cli::command bundle_keygen_row() {
  return without_tables({"bundle keygen",
                         "Makes a key that signs bundles, and its public half.",
                         "kernelmill bundle keygen --out sign.pem",
                         "Ed25519, PEM without a password, mode 0600.",
                         {},
                         {{"--out",
                           "FILE",
                           "The private key; FILE.pub gets the public one.",
                           "",
                           true,
                           {},
                           completes::file}},
                         bundle_keygen});
}

} // namespace kernelmill::commands
