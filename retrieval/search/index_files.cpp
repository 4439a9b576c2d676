#include "retrieval/search/index_files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/corpora/knowledge.hpp"
#include "retrieval/search/entry_rows.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "retrieval/search/mapped_file.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr uint32_t current_schema = 3; // 1: JSON, and vectors in FAISS's format; 2: no words
constexpr const char *entries_file = "entries.rows", *vectors_file = "vectors.rows",
                     *words_file = "words.rows";
constexpr const char* rebuild = "build it again with `kernelmill index build`";

tl::unexpected<error> damaged(const fs::path& file, const std::string& cause) {
  return damaged_index_file(file.string(), cause);
}

tl::unexpected<error> not_matching(const std::string& directory, const std::string& cause,
                                   std::string hint = rebuild) {
  return configuration_error("index_mismatch",
                             fmt::format("failed to open index {}: {}", directory, cause),
                             std::move(hint));
}

constexpr std::string_view of_server = "openai-embeddings/1 model=";
constexpr std::string_view of_words = "hashed-lexical/2 dim=";

/// What a command or a run is told of an embedder.
std::string how_to_use(std::string_view identity) {
  if (identity.starts_with(of_words))
    return "leave retrieval.embedder.kind and retrieval.embedder.dimension out (of a command: "
           "--embedder and --dimension): the index's are taken";
  if (identity.starts_with(of_server)) {
    auto model = identity.substr(of_server.size());
    return fmt::format("set retrieval.embedder.kind=http, retrieval.embedder.model={} and "
                       "retrieval.embedder.base_url (of a command: --embedder http --model {} "
                       "--base-url URL)",
                       model, model);
  }
  return "configure that embedder";
}

/// Empty: with the built-in embedder.
std::string how_to_build(const std::string& directory, std::string_view identity) {
  std::string options;
  if (identity.starts_with(of_words))
    options = fmt::format(" --dimension {}", identity.substr(of_words.size()));
  if (identity.starts_with(of_server))
    options = fmt::format(" --embedder http --model {} --base-url URL",
                          identity.substr(of_server.size()));
  return fmt::format("build it again from its sources: `kernelmill index build {}{}`", directory,
                     options);
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
        fmt::format(
            "make an index there with `kernelmill index build {0}`, or name the folder of one",
            file.parent_path().string()));
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

ordered_json to_json(const index_manifest& x) {
  return {{"schema_version", x.schema_version},
          {"embedder", x.embedder},
          {"dimension", x.dimension},
          {"corpus_digest", x.corpus_digest},
          {"cards", x.cards},
          {"kernels", x.kernels},
          {"entries_digest", x.entries_digest},
          {"vectors_digest", x.vectors_digest},
          {"words_digest", x.words_digest}};
}

expected<index_manifest> manifest_from(const fs::path& file, const std::string& text) {
  try {
    auto x = ordered_json::parse(text, nullptr, false);
    if (!x.is_object()) return damaged(file, "it is no JSON object");
    // A run's folder has a file of this name, too.
    if (!x.contains("embedder"))
      return configuration_error(
          "index_missing",
          fmt::format("failed to open index file {}: it is no index's", file.string()),
          "set retrieval.index to the folder of an index; `kernelmill index build` makes one");
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
    x.at("entries_digest").get_to(result.entries_digest);
    x.at("vectors_digest").get_to(result.vectors_digest);
    x.at("words_digest").get_to(result.words_digest);
    return result;
  } catch (const std::exception& e) {
    return damaged(file, e.what());
  }
}

/// `write` makes the file under another name first and returns its digest.
template <class F>
expected<std::string> write_beside(const fs::path& file, F&& write) {
  auto temporary = file;
  temporary += ".new";
  expected<std::string> digest = write(temporary.string());
  KM_TRY(digest);
  KM_TRY(settle(temporary, file));
  return digest;
}

} // namespace

std::shared_ptr<embedder> lexical_embedder(size_t dimension) {
  return std::make_shared<hashed_lexical_embedder>(dimension > 0 ? dimension
                                                                 : default_lexical_dimension);
}

expected<index_manifest> write_index_files(const std::string& directory, index_manifest manifest,
                                           const std::vector<index_entry>& entries,
                                           const vector_index& vectors, const bm25_index& words) {
  fs::path folder{directory};
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return not_written(folder, ec.message());
  auto texts = write_beside(folder / entries_file,
                            [&](const std::string& to) { return write_entry_file(to, entries); });
  KM_TRY(texts);
  auto rows =
      write_beside(folder / vectors_file, [&](const std::string& to) { return vectors.save(to); });
  KM_TRY(rows);
  auto terms =
      write_beside(folder / words_file, [&](const std::string& to) { return words.save(to); });
  KM_TRY(terms);
  manifest.schema_version = current_schema;
  manifest.entries_digest = *texts;
  manifest.vectors_digest = *rows;
  manifest.words_digest = *terms;
  KM_TRY(write_file(folder / "manifest.json", to_json(manifest).dump(2) + "\n"));
  return manifest;
}

expected<index_files> read_index_files(const std::string& directory) {
  fs::path folder{directory};
  auto manifest_text = read_file(folder / "manifest.json");
  KM_TRY(manifest_text);
  auto manifest = manifest_from(folder / "manifest.json", *manifest_text);
  KM_TRY(manifest);
  // Each is read whole to be checked: one after the other would take as long as all of them.
  auto vectors = std::async(std::launch::async, [&] {
    return vector_index::load((folder / vectors_file).string(), manifest->vectors_digest);
  });
  auto words = std::async(std::launch::async, [&] {
    return bm25_index::load((folder / words_file).string(), manifest->words_digest);
  });
  auto entries = map_entry_file((folder / entries_file).string(), manifest->entries_digest);
  auto rows = vectors.get();
  auto terms = words.get();
  KM_TRY(entries);
  KM_TRY(rows);
  KM_TRY(terms);
  if (rows->dimension() != manifest->dimension || rows->size() != entries->size())
    return damaged(folder / vectors_file,
                   fmt::format("{} rows of {} floats for {} entries of {}", rows->size(),
                               rows->dimension(), entries->size(), manifest->dimension));
  if (terms->size() != entries->size())
    return damaged(folder / words_file,
                   fmt::format("words of {} entries for {}", terms->size(), entries->size()));
  return index_files{std::move(*manifest), std::move(*entries), std::move(*rows),
                     std::move(*terms)};
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
          how_to_use(manifest.embedder) + ", or " + how_to_build(directory, {}));
    embedding = std::move(own);
    return {};
  }
  if (embedding->identity() != manifest.embedder)
    return not_matching(directory,
                        fmt::format("it was built with the embedder \"{}\", not with \"{}\"",
                                    manifest.embedder, embedding->identity()),
                        how_to_use(manifest.embedder) + ", or " +
                            how_to_build(directory, embedding->identity()));
  // A server says how long its vectors are when it is asked.
  if (embedding->dimension() == 0) KM_TRY(embedding->embed({"how many floats"}));
  if (embedding->dimension() != manifest.dimension)
    return not_matching(directory,
                        fmt::format("its vectors have {} floats, the embedder's have {}",
                                    manifest.dimension, embedding->dimension()),
                        how_to_build(directory, manifest.embedder));
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
