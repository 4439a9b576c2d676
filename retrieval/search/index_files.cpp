#include "retrieval/search/index_files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/corpora/knowledge.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr uint32_t current_schema = 2; // 1: vectors in FAISS's format
// Building again would make the same index: `index build` has one embedder.
constexpr const char* as_built =
    "leave retrieval.embedder.kind and retrieval.embedder.dimension out: the index's are taken; or "
    "leave retrieval.index out: the run then indexes the cards itself";
constexpr const char* rebuild = "build it again with `kernelmill index build`";

tl::unexpected<error> damaged(const fs::path& file, const std::string& cause) {
  return configuration_error("index_damaged",
                             fmt::format("failed to open index file {}: {}", file.string(), cause),
                             rebuild);
}

tl::unexpected<error> not_matching(const std::string& directory, const std::string& cause,
                                   std::string hint = rebuild) {
  return configuration_error("index_mismatch",
                             fmt::format("failed to open index {}: {}", directory, cause),
                             std::move(hint));
}

tl::unexpected<error> not_written(const fs::path& file, const std::string& cause) {
  return infrastructure_error("index_not_written",
                              fmt::format("failed to write {}: {}", file.string(), cause),
                              "check that the folder is writable and its disk is not full");
}

expected<std::string> read_file(const fs::path& file) {
  auto text = read_whole(file.string());
  if (!text)
    return configuration_error(
        "index_missing",
        fmt::format("failed to open index file {}: {}", file.string(), std::strerror(errno)),
        "make an index with `kernelmill index build`");
  return std::move(*text);
}

/// On disk before it gets its name, so that a crash leaves the old file or the new one.
expected<void> settle(const fs::path& temporary, const fs::path& file) {
  int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return not_written(temporary, std::strerror(errno));
  int failed = ::fsync(descriptor);
  auto cause = errno;
  ::close(descriptor);
  if (failed != 0) return not_written(temporary, std::strerror(cause));
  std::error_code ec;
  fs::rename(temporary, file, ec);
  if (ec) return not_written(file, ec.message());
  return {};
}

expected<void> write_file(const fs::path& file, const std::string& text) {
  auto temporary = file;
  temporary += ".new";
  {
    std::ofstream out{temporary, std::ios::binary | std::ios::trunc};
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) return not_written(temporary, std::strerror(errno));
  }
  return settle(temporary, file);
}

expected<std::string> write_vectors(const fs::path& file, const vector_index& vectors) {
  auto temporary = file;
  temporary += ".new";
  auto digest = vectors.save(temporary.string());
  KM_TRY(digest);
  KM_TRY(settle(temporary, file));
  return digest;
}

// -- entries and manifest as JSON -------------------------------------------------------------

ordered_json to_json(const index_entry& x) {
  return {{"id", x.id},
          {"kind", x.kind},
          {"title", x.title},
          {"text", x.text},
          {"source", x.source},
          {"task", x.task},
          {"operator_family", x.families},
          {"backends", x.backends},
          {"speedup", x.speedup},
          {"language", x.language},
          {"split", x.split},
          {"rights_source", x.rights_source}};
}

index_entry entry_from(const ordered_json& x) {
  return {x.at("id"),
          x.at("kind"),
          x.at("title"),
          x.at("text"),
          x.at("source"),
          x.at("task"),
          x.at("operator_family"),
          x.at("backends"),
          x.at("speedup"),
          x.value("language", "cpp"), // older indexes do not name it, nor what follows
          x.value("split", ""),
          x.value("rights_source", "")};
}

ordered_json to_json(const index_manifest& x) {
  return {{"schema_version", x.schema_version},
          {"embedder", x.embedder},
          {"dimension", x.dimension},
          {"corpus_digest", x.corpus_digest},
          {"cards", x.cards},
          {"kernels", x.kernels},
          {"entries_sha256", x.entries_sha256},
          {"vectors_digest", x.vectors_digest}};
}

expected<index_manifest> manifest_from(const fs::path& file, const std::string& text) {
  try {
    auto x = ordered_json::parse(text);
    index_manifest result;
    x.at("schema_version").get_to(result.schema_version);
    if (result.schema_version > current_schema)
      return configuration_error(
          "newer_schema",
          fmt::format("failed to open index file {}: schema version {} is newer than {}",
                      file.string(), result.schema_version, current_schema),
          "use the kernelmill that built it, or build it again with this one");
    if (result.schema_version < current_schema)
      return configuration_error(
          "index_mismatch",
          fmt::format("failed to open index file {}: an older kernelmill wrote it", file.string()),
          rebuild);
    x.at("embedder").get_to(result.embedder);
    x.at("dimension").get_to(result.dimension);
    x.at("corpus_digest").get_to(result.corpus_digest);
    x.at("cards").get_to(result.cards);
    x.at("kernels").get_to(result.kernels);
    x.at("entries_sha256").get_to(result.entries_sha256);
    x.at("vectors_digest").get_to(result.vectors_digest);
    return result;
  } catch (const std::exception& e) {
    return damaged(file, e.what());
  }
}

expected<std::vector<index_entry>> entries_from(const fs::path& file, const std::string& text) {
  try {
    std::vector<index_entry> result;
    for (const auto& x : ordered_json::parse(text)) result.push_back(entry_from(x));
    return result;
  } catch (const std::exception& e) {
    return damaged(file, e.what());
  }
}

} // namespace

std::shared_ptr<embedder> lexical_embedder(size_t dimension) {
  return std::make_shared<hashed_lexical_embedder>(dimension > 0 ? dimension
                                                                 : default_lexical_dimension);
}

expected<index_manifest> write_index_files(const std::string& directory, index_manifest manifest,
                                           const std::vector<index_entry>& entries,
                                           const vector_index& vectors) {
  fs::path folder{directory};
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return not_written(folder, ec.message());
  auto list = ordered_json::array();
  for (const auto& x : entries) list.push_back(to_json(x));
  auto text = list.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  KM_TRY(write_file(folder / "entries.json", text));
  auto digest = write_vectors(folder / "vectors.rows", vectors);
  KM_TRY(digest);
  manifest.schema_version = current_schema;
  manifest.entries_sha256 = sha256_hex(text);
  manifest.vectors_digest = *digest;
  KM_TRY(write_file(folder / "manifest.json", to_json(manifest).dump(2) + "\n"));
  return manifest;
}

expected<index_files> read_index_files(const std::string& directory) {
  fs::path folder{directory};
  auto manifest_text = read_file(folder / "manifest.json");
  KM_TRY(manifest_text);
  auto manifest = manifest_from(folder / "manifest.json", *manifest_text);
  KM_TRY(manifest);
  auto entries_text = read_file(folder / "entries.json");
  KM_TRY(entries_text);
  if (sha256_hex(*entries_text) != manifest->entries_sha256)
    return damaged(folder / "entries.json", "it is not the one that manifest.json names");
  auto entries = entries_from(folder / "entries.json", *entries_text);
  KM_TRY(entries);
  auto vectors = vector_index::load((folder / "vectors.rows").string(), manifest->vectors_digest);
  KM_TRY(vectors);
  if (vectors->dimension() != manifest->dimension || vectors->size() != entries->size())
    return damaged(folder / "vectors.rows",
                   fmt::format("{} rows of {} floats for {} entries of {}", vectors->size(),
                               vectors->dimension(), entries->size(), manifest->dimension));
  return index_files{std::move(*manifest), std::move(*entries), std::move(*vectors)};
}

expected<void> match_embedder(const std::string& directory, const index_manifest& manifest,
                              std::shared_ptr<embedder>& embedding) {
  if (!embedding) {
    auto own = manifest.dimension >= 16 ? lexical_embedder(manifest.dimension) : nullptr;
    if (!own || own->identity() != manifest.embedder)
      return not_matching(
          directory,
          fmt::format("it was built with the embedder \"{}\", which is not built in",
                      manifest.embedder),
          "configure that embedder, or build the index again");
    embedding = std::move(own);
    return {};
  }
  if (embedding->identity() != manifest.embedder)
    return not_matching(directory,
                        fmt::format("it was built with the embedder \"{}\", not with \"{}\"",
                                    manifest.embedder, embedding->identity()),
                        as_built);
  if (embedding->dimension() != 0 && embedding->dimension() != manifest.dimension)
    return not_matching(directory,
                        fmt::format("its vectors have {} floats, the embedder's have {}",
                                    manifest.dimension, embedding->dimension()),
                        as_built);
  return {};
}

expected<void> match_corpus(const std::string& directory, const index_manifest& manifest,
                            const std::string& knowledge) {
  auto cards = load_cards(knowledge);
  KM_TRY(cards);
  if (corpus_digest(*cards) != manifest.corpus_digest)
    return not_matching(directory,
                        fmt::format("the cards in {} have changed since it was built", knowledge));
  return {};
}

} // namespace kernelmill
