#include "retrieval/search/index.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "retrieval/corpora/knowledge.hpp"
#include "retrieval/search/entry_drafts.hpp"
#include "retrieval/search/index_files.hpp"
#include "retrieval/search/remembered.hpp"

namespace kernelmill {

namespace {

constexpr size_t drafts_at_once = 256; // their texts are copied for the embedder

row_facts facts_of(const index_entry& x, fact_table& names) {
  // A kernel has one of each at most; cards are few, and are asked themselves.
  row_facts result;
  result.family = names.number(x.families.empty() ? "" : x.families.front());
  result.backend = names.number(x.backends.empty() ? "" : x.backends.front());
  result.written_in = names.number(x.written_in);
  result.hidden = x.split == "dev";
  return result;
}

} // namespace

loaded_index::loaded_index(std::shared_ptr<embedder> embedding, vector_index vectors,
                           bm25_index words)
    : embedding_(std::move(embedding)), vectors_(std::move(vectors)), words_(std::move(words)),
      remembered_(std::make_unique<remembered>()) {
  // nop
}

loaded_index::loaded_index(loaded_index&&) noexcept = default;
loaded_index& loaded_index::operator=(loaded_index&&) noexcept = default;
loaded_index::~loaded_index() = default;

void loaded_index::name_splits(const std::function<std::string(const index_entry&)>& split_of) {
  for (size_t row = cards_; row < entries_.size(); ++row) {
    auto& x = entries_[row];
    if (!x.split.empty()) continue;
    x.split = split_of(x);
    if (x.split == "dev") facts_.rows[row].hidden = true;
  }
}

leak_guard& loaded_index::guard() {
  remembered_->taught.clear(); // whose solutions a task shares may change
  return guard_;
}

void loaded_index::take(index_entry x) {
  facts_.rows.push_back(facts_of(x, facts_));
  bool is_card = x.kind == "card";
  if (is_card) ++cards_;
  remembered_->untaught.push_back(is_card ? 0 : remembered::key_of(x.task));
  if (!is_card) remembered_->taught.clear();
  entries_.push_back(std::move(x));
}

/// The guard learns what the entries of a task say when that task asks: of 50,000 kernels most are
/// of tasks that never do.
void loaded_index::teach(const std::string& task) const {
  auto tasks = guard_.related(task);
  auto& untaught = remembered_->untaught;
  for (const auto& one : tasks) {
    auto key = remembered::key_of(one);
    for (auto at = untaught.begin(); (at = std::find(at, untaught.end(), key)) != untaught.end();) {
      const auto& entry = entries_[static_cast<size_t>(at - untaught.begin())];
      guard_.add_solution(entry.task, entry.text);
      *at = 0;
    }
  }
  remembered_->taught.insert(task);
}

std::shared_ptr<const shingle_set> loaded_index::shingles(size_t row) const {
  auto& x = *remembered_;
  {
    std::lock_guard lock{x.shingles_mutex};
    if (auto known = x.shingles.find(row); known != x.shingles.end()) return known->second;
  }
  auto made = std::make_shared<const shingle_set>(shingles_of(entries_[row].text));
  std::lock_guard lock{x.shingles_mutex};
  if (x.shingles.size() >= remembered::most_shingles) x.shingles.clear();
  x.shingles.emplace(row, made);
  return made;
}

expected<loaded_index> loaded_index::in_memory(const std::string& knowledge,
                                               const std::vector<kernel_example>& kernels,
                                               std::shared_ptr<embedder> embedding) {
  expected<std::vector<knowledge_card>> cards = std::vector<knowledge_card>{};
  if (!knowledge.empty()) cards = load_cards(knowledge);
  KM_TRY(cards);
  loaded_index result{std::move(embedding), vector_index{0}, bm25_index{}};
  auto& by = *result.embedding_;
  std::vector<entry_draft> drafts;
  auto take_drafts = [&]() -> expected<void> {
    if (drafts.empty()) return {};
    auto rows = embed_drafts(by, drafts);
    KM_TRY(rows);
    if (result.entries_.empty()) result.vectors_ = vector_index{by.dimension()};
    KM_TRY(result.vectors_.add(*rows));
    for (auto& x : drafts) {
      result.words_.add(terms_of(x));
      result.take(std::move(x.entry));
    }
    drafts.clear();
    return {};
  };
  auto add = [&](entry_draft x) -> expected<void> {
    drafts.push_back(std::move(x));
    return drafts.size() < drafts_at_once ? expected<void>{} : take_drafts();
  };
  for (const auto& card : *cards) KM_TRY(add(draft_of(card)));
  std::unordered_set<std::string_view> ids;
  for (const auto& kernel : kernels) {
    if (!kernel.is_shown())
      result.guard_.add_solution(kernel.task, kernel.source);
    else if (ids.insert(kernel.id).second)
      KM_TRY(add(draft_of(kernel)));
  }
  KM_TRY(take_drafts());
  if (result.entries_.empty()) {
    // A server says how long its vectors are when it is asked.
    if (by.dimension() == 0) KM_TRY(by.embed({"how many floats"}));
    result.vectors_ = vector_index{by.dimension()};
  }
  result.manifest_.embedder = by.identity();
  result.manifest_.dimension = by.dimension();
  result.manifest_.corpus_digest = corpus_digest(*cards);
  result.manifest_.cards = result.cards_;
  result.manifest_.kernels = result.kernels();
  return result;
}

expected<bool> loaded_index::add_kernel(const kernel_example& x) {
  if (ids_.empty())
    for (const auto& entry : entries_) ids_.insert(entry.id);
  if (ids_.contains("kernel:" + x.id)) {
    // A run that is made anew under an old name has the old one's ids, and other kernels.
    guard_.add_solution(x.task, x.source);
    return false;
  }
  auto place = fmt::format("{}\n{}\n{}", x.task, x.device, x.language);
  auto rival = fastest_.find(place);
  bool is_beaten = rival != fastest_.end() && entries_[rival->second].speedup >= x.speedup;
  if (!x.is_shown() || is_beaten) {
    guard_.add_solution(x.task, x.source);
    return false;
  }
  std::vector<entry_draft> drafts;
  drafts.push_back(draft_of(x));
  auto row = embed_drafts(*embedding_, drafts);
  if (!row) {
    // Cards and kernels of other tasks may resemble it even when it cannot be an entry itself.
    guard_.add_solution(x.task, x.source);
    return tl::unexpected{row.error()};
  }
  KM_TRY(vectors_.add(*row));
  words_.add(terms_of(drafts.front()));
  ids_.insert(drafts.front().entry.id);
  take(std::move(drafts.front().entry));
  if (rival != fastest_.end()) hide(rival->second);
  fastest_[std::move(place)] = entries_.size() - 1;
  return true;
}

void loaded_index::hide(size_t i) {
  if (std::exchange(facts_.rows[i].hidden, true) || i < cards_) return;
  ++hidden_kernels_;
}

// -- on disk ----------------------------------------------------------------------------------

expected<index_manifest> build_index(const index_options& options) {
  auto embedding = options.embedding ? options.embedding : lexical_embedder();
  auto index = loaded_index::in_memory(options.knowledge, options.kernels, std::move(embedding));
  KM_TRY(index);
  return write_index_files(options.directory, index->manifest_, index->entries_, index->vectors_,
                           index->words_);
}

expected<loaded_index> open_index(const std::string& directory, std::shared_ptr<embedder> embedding,
                                  const std::string& knowledge) {
  auto files = read_index_files(directory);
  KM_TRY(files);
  KM_TRY(match_embedder(directory, files->manifest, embedding));
  if (!knowledge.empty()) KM_TRY(match_corpus(directory, files->manifest, knowledge));
  loaded_index result{std::move(embedding), std::move(files->vectors), std::move(files->words)};
  result.entries_.reserve(files->entries.size());
  for (auto& entry : files->entries) result.take(std::move(entry));
  result.manifest_ = std::move(files->manifest);
  return result;
}

} // namespace kernelmill
