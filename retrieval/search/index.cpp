#include "retrieval/search/index.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "retrieval/corpora/knowledge.hpp"
#include "retrieval/search/index_files.hpp"

namespace kernelmill {

namespace {

/// What an entry is about, in few words: its title and its header.
std::string subject_of(const index_entry& x, const std::string& tags) {
  return fmt::format("{}\n{}\n{}", x.title, fmt::join(x.families, " "), tags);
}

/// One row for each entry, half subject and half text: in a page of advice the few words that
/// name its subject would otherwise weigh no more than any others.
expected<std::vector<float>> embed_entries(embedder& embedding,
                                           const std::vector<index_entry>& entries,
                                           const std::vector<std::string>& tags) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < entries.size(); ++i) texts.push_back(subject_of(entries[i], tags[i]));
  for (const auto& x : entries) texts.emplace_back(x.text.view());
  auto rows = embedding.embed(texts);
  if (!rows) return rows;
  auto dimension = embedding.dimension();
  auto half = entries.size() * dimension;
  for (size_t i = 0; i < half; ++i) (*rows)[i] += (*rows)[half + i];
  rows->resize(half);
  for (size_t i = 0; i < entries.size(); ++i) normalize(rows->data() + i * dimension, dimension);
  return rows;
}

index_entry entry_of(const knowledge_card& x) {
  index_entry result;
  result.id = "card:" + x.id;
  result.kind = "card";
  result.title = x.title;
  result.text = x.body;
  result.source = x.source;
  result.families = x.families;
  result.backends = x.backends;
  return result;
}

index_entry entry_of(const kernel_example& x) {
  auto title = x.speedup > 0
                   ? fmt::format("Verified kernel for {}, {:.2f} times the baseline's speed",
                                 x.task, x.speedup)
                   : fmt::format("Verified kernel for {}", x.task);
  std::vector<std::string> families;
  if (!x.operator_family.empty()) families.push_back(x.operator_family);
  std::vector<std::string> backends;
  if (!x.backend.empty()) backends.push_back(x.backend);
  return {"kernel:" + x.id,
          "kernel",
          std::move(title),
          x.source,
          x.id,
          x.task,
          std::move(families),
          std::move(backends),
          x.speedup,
          x.language,
          x.split,
          x.rights_source,
          x.reference,
          x.device,
          x.date,
          x.origin};
}

bool holds(const std::vector<std::string>& xs, const std::string& x) {
  return std::find(xs.begin(), xs.end(), x) != xs.end();
}

// What is held out is for measuring alone: a prompt that showed it would train on it.
bool is_held_out(const std::string& split) {
  return split == "dev";
}

} // namespace

void loaded_index::name_splits(
    const std::function<std::string(const std::string& task)>& split_of) {
  for (auto& x : entries_)
    if (x.kind == "kernel" && x.split.empty()) x.split = split_of(x.task);
}

void loaded_index::take(index_entry x) {
  shingles_.push_back(shingles_of(x.text));
  if (x.kind == "kernel") {
    guard_.add_solution(x.task, x.text);
    ++kernels_;
  }
  ids_.insert(x.id);
  entries_.push_back(std::move(x));
}

bool loaded_index::knows(const std::string& id) const {
  return ids_.contains("kernel:" + id);
}

expected<loaded_index> loaded_index::in_memory(const std::string& knowledge,
                                               const std::vector<kernel_example>& kernels,
                                               std::shared_ptr<embedder> embedding) {
  auto cards = load_cards(knowledge);
  KM_TRY(cards);
  std::vector<index_entry> entries;
  std::vector<std::string> tags;
  for (const auto& card : *cards) {
    entries.push_back(entry_of(card));
    tags.push_back(fmt::format("{}", fmt::join(card.tags, " ")));
  }
  std::unordered_set<std::string> turns;
  for (const auto& kernel : kernels) {
    if (!kernel.is_shown() || !turns.insert(kernel.id).second) continue;
    entries.push_back(entry_of(kernel));
    tags.push_back(kernel.task);
  }
  auto rows = embed_entries(*embedding, entries, tags);
  KM_TRY(rows);
  vector_index vectors{embedding->dimension()};
  KM_TRY(vectors.add(*rows));
  loaded_index result{std::move(embedding), std::move(vectors)};
  for (auto& entry : entries) result.take(std::move(entry));
  for (const auto& kernel : kernels)
    if (!kernel.is_shown()) result.guard_.add_solution(kernel.task, kernel.source);
  result.manifest_.embedder = result.embedding_->identity();
  result.manifest_.dimension = result.embedding_->dimension();
  result.manifest_.corpus_digest = corpus_digest(*cards);
  result.manifest_.cards = cards->size();
  result.manifest_.kernels = result.kernels_;
  return result;
}

expected<bool> loaded_index::add_kernel(const kernel_example& x) {
  if (knows(x.id)) return false;
  auto place = fmt::format("{}\n{}\n{}", x.task, x.device, x.language);
  auto rival = fastest_.find(place);
  bool is_beaten = rival != fastest_.end() && entries_[rival->second].speedup >= x.speedup;
  if (!x.is_shown() || is_beaten) {
    guard_.add_solution(x.task, x.source);
    return false;
  }
  auto entry = entry_of(x);
  auto row = embed_entries(*embedding_, {entry}, {x.task});
  if (!row) {
    // Cards and kernels of other tasks may resemble it even when it cannot be an entry itself.
    guard_.add_solution(x.task, x.source);
    return tl::unexpected{row.error()};
  }
  KM_TRY(vectors_.add(*row));
  take(std::move(entry));
  if (rival != fastest_.end()) hide(rival->second);
  fastest_[std::move(place)] = entries_.size() - 1;
  return true;
}

void loaded_index::hide(size_t i) {
  if (hidden_.insert(i).second && entries_[i].kind == "kernel") --kernels_;
}

double loaded_index::boost_of(const index_entry& x, const std::string& family,
                              const std::string& backend) const {
  double result = 0;
  if (!family.empty() && holds(x.families, family)) result += family_boost;
  if (!backend.empty() && holds(x.backends, backend)) result += backend_boost;
  return result;
}

retrieval_answer loaded_index::choose(const std::vector<neighbour>& ranked, size_t k,
                                      const asking_task& asks) const {
  retrieval_answer answer;
  std::vector<size_t> rows;
  for (const auto& hit : ranked) {
    if (answer.results.size() >= k) break;
    if (hidden_.contains(hit.row)) continue;
    const auto& entry = entries_[hit.row];
    auto kernel = entry.kind == "kernel" ? entry.text.view() : std::string_view{};
    if (guard_.withholds(asks, {entry.task, entry.reference, kernel, &shingles_[hit.row]})) {
      ++answer.withheld;
      continue;
    }
    bool repeats = entry.kind == "kernel" && std::any_of(rows.begin(), rows.end(), [&](size_t row) {
                     return near_duplicate(shingles_[row], shingles_[hit.row]);
                   });
    if (repeats) continue;
    rows.push_back(hit.row);
    answer.results.push_back({entry, hit.score});
  }
  return answer;
}

expected<retrieval_answer> loaded_index::query(const retrieval_query& x) const {
  auto k = std::min(x.count, max_results);
  if (k == 0 || entries_.empty()) return retrieval_answer{};
  auto row = embedding_->embed({x.text});
  KM_TRY(row);
  const row_lift lift{[&](size_t at) {
                        const auto& entry = entries_[at];
                        if (is_held_out(entry.split))
                          return -std::numeric_limits<float>::infinity();
                        return static_cast<float>(boost_of(entry, x.family, x.backend));
                      },
                      static_cast<float>(family_boost + backend_boost)};
  const auto asks = asking(x.exclude_task, x.reference);
  // Most queries need a few rows more than they show: those that the leak guard withholds, and
  // kernels that repeat a better one.
  for (size_t fetch = 16 + 4 * k;; fetch *= 4) {
    auto ranked = vectors_.search(*row, fetch, lift);
    KM_TRY(ranked);
    auto answer = choose(*ranked, k, asks);
    if (answer.results.size() == k || fetch >= entries_.size()) return answer;
  }
}

// -- on disk ----------------------------------------------------------------------------------

expected<index_manifest> build_index(const index_options& options) {
  auto embedding = options.embedding ? options.embedding : lexical_embedder();
  auto index = loaded_index::in_memory(options.knowledge, options.kernels, std::move(embedding));
  KM_TRY(index);
  return write_index_files(options.directory, index->manifest_, index->entries_, index->vectors_);
}

expected<loaded_index> open_index(const std::string& directory, std::shared_ptr<embedder> embedding,
                                  const std::string& knowledge) {
  auto files = read_index_files(directory);
  KM_TRY(files);
  KM_TRY(match_embedder(directory, files->manifest, embedding));
  if (!knowledge.empty()) KM_TRY(match_corpus(directory, files->manifest, knowledge));
  loaded_index result{std::move(embedding), std::move(files->vectors)};
  for (auto& entry : files->entries) result.take(std::move(entry));
  result.manifest_ = std::move(files->manifest);
  return result;
}

} // namespace kernelmill
