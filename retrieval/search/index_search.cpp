// How a query is answered: two rankings in one, then the choice of what may be shown.

#include <algorithm>
#include <limits>
#include <optional>

#include "retrieval/code/reference_code.hpp"
#include "retrieval/search/index.hpp"
#include "retrieval/search/remembered.hpp"

namespace kernelmill {

namespace {

/// Of ranks: how little the first one is worth more than the second. That of the paper.
constexpr double rank_constant = 60;

/// Of a ranking: a search goes no deeper for kernels that do not repeat one another.
constexpr size_t deepest = 4096;

constexpr float left_out = -std::numeric_limits<float>::infinity();

struct candidate {
  size_t row;
  float cosine;
  double fused; ///< of both ranks
};

bool is_among(const std::vector<std::string>& xs, const std::string& x) {
  return std::find(xs.begin(), xs.end(), x) != xs.end();
}

/// Says whether `x`, names with blanks between them, has one of `names`.
bool shares_name(std::string_view x, const std::vector<std::string>& names) {
  while (!x.empty()) {
    auto end = std::min(x.find(' '), x.size());
    auto name = x.substr(0, end);
    if (std::any_of(names.begin(), names.end(), [&](const auto& one) { return one == name; }))
      return true;
    x.remove_prefix(std::min(end + 1, x.size()));
  }
  return false;
}

} // namespace

class index_search {
public:
  index_search(const loaded_index& index, const retrieval_query& query)
      : index_(index), query_(query), most_(std::min(query.count, max_results)),
        family_(index.facts_.find(query.family)), backend_(index.facts_.find(query.backend)),
        // A judge says "torch" of Python that calls no language for kernels.
        language_(index.facts_.find(query.language == "torch" ? "python" : query.language)) {}

  expected<retrieval_answer> run() {
    if (most_ == 0 || index_.size() == 0) return retrieval_answer{};
    KM_TRY(read_query());
    std::shared_lock lock{index_.remembered_->guard_mutex, std::defer_lock};
    if (!query_.exclude_task.empty()) {
      auto& known = *index_.remembered_;
      lock.lock();
      if (!known.taught.contains(query_.exclude_task)) {
        lock.unlock();
        {
          std::unique_lock alone{known.guard_mutex}; // waits for every query that goes on
          index_.teach(query_.exclude_task);
        }
        lock.lock();
      }
    }
    KM_TRY(fill(stage::good_kernels));
    KM_TRY(fill(stage::cards));
    KM_TRY(fill(stage::other_kernels));
    return std::move(answer_);
  }

private:
  enum class stage { good_kernels, cards, other_kernels };

  struct ranking {
    std::vector<candidate> best_first;
    bool is_all = false;      ///< no row is left
    bool rest_is_far = false; ///< no row that is left has a good cosine
  };

  /// The computation of the task that asks.
  const std::string& excluded() const {
    return query_.exclude_reference.empty() ? query_.reference : query_.exclude_reference;
  }

  bool is_full() const { return answer_.results.size() >= most_; }

  expected<void> read_query() {
    std::vector<std::string> texts;
    if (query_.reference.empty()) {
      if (!query_.exclude_task.empty()) asks_ = asking(query_.exclude_task, excluded());
    } else {
      auto code = read_reference(query_.reference);
      if (!query_.exclude_task.empty())
        asks_ = query_.exclude_reference.empty()
                    ? asking(query_.exclude_task, query_.reference, code.signature)
                    : asking(query_.exclude_task, query_.exclude_reference);
      add_words(terms_of_kernels_, code.words);
      for (auto& x : code.operators) {
        auto term = operator_term(x);
        terms_of_kernels_.push_back(term);
        // What every other problem adds, multiplies or reshapes says little.
        if (4 * index_.words_.rows_with(term) < index_.kernels())
          operators_.push_back(std::move(x));
      }
      if (!code.words.empty()) texts.push_back(std::move(code.words));
    }
    terms_of_cards_ = terms_of_kernels_;
    add_words(terms_of_cards_, query_.text);
    // Prompts of tasks in PyTorch say the same of all of them; their code tells them apart.
    if (terms_of_kernels_.empty()) terms_of_kernels_ = terms_of_cards_;
    bool has_code = !texts.empty();
    if (!query_.text.empty() || !has_code) texts.push_back(query_.text);
    auto rows = index_.embedding_->embed(texts);
    KM_TRY(rows);
    vector_ = std::move(*rows);
    if (texts.size() == 1) return {};
    auto dimension = vector_.size() / 2;
    auto of_code = static_cast<float>(index_.weights_.code);
    for (size_t i = 0; i < dimension; ++i)
      vector_[i] = of_code * vector_[i] + (1 - of_code) * vector_[dimension + i];
    vector_.resize(dimension);
    normalize(vector_.data(), dimension);
    return {};
  }

  // -- ranking ----------------------------------------------------------------------------------

  float lift_of_kernel(size_t row) const {
    const auto& x = index_.facts_.rows[row];
    if (x.hidden) return left_out;
    if (backend_ != 0 && x.backend != 0 && x.backend != backend_) return left_out;
    if (language_ != 0 && x.written_in != language_) return left_out;
    float result = 0;
    if (family_ != 0 && x.family == family_) result += family_boost;
    if (backend_ != 0 && x.backend == backend_) result += backend_boost;
    return result;
  }

  float lift_of_card(size_t row) const {
    const auto& x = index_.entries_[row];
    bool is_named = is_among(x.backends, query_.backend);
    if (!query_.backend.empty() && !x.backends.empty() && !is_named) return left_out;
    float result = 0;
    if (is_among(x.families, query_.family)) result += family_boost;
    if (is_named) result += backend_boost;
    return result;
  }

  float lift_of(size_t row) const {
    return row < index_.cards_ ? lift_of_card(row) : lift_of_kernel(row);
  }

  /// The best of the rows from `first` on and before `last`: of `depth` by vectors and as many by
  /// words.
  expected<ranking> rank(size_t first, size_t last, size_t depth) const {
    const row_lift lift{[this](size_t row) { return lift_of(row); },
                        static_cast<float>(family_boost + backend_boost), first, last};
    auto near = index_.vectors_.search(vector_, depth, lift);
    KM_TRY(near);
    ranking result;
    result.is_all = near->size() < depth || depth >= last - first;
    result.rest_is_far = near->empty() || near->back().score < good_cosine;
    auto& all = result.best_first;
    auto value = [](size_t rank) { return 1 / (rank_constant + static_cast<double>(rank) + 1); };
    for (size_t i = 0; i < near->size(); ++i) {
      const auto& x = (*near)[i];
      all.push_back({x.row, x.score - lift_of(x.row), value(i)});
    }
    if (index_.weights_.words > 0) add_ranks_by_words(all, first, last, depth, value);
    std::sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) {
      return a.fused != b.fused ? a.fused > b.fused : a.row < b.row;
    });
    return result;
  }

  template <class F>
  void add_ranks_by_words(std::vector<candidate>& to, size_t first, size_t last, size_t depth,
                          F&& value) const {
    auto by_row = [](const candidate& x, size_t row) { return x.row < row; };
    std::sort(to.begin(), to.end(),
              [](const candidate& a, const candidate& b) { return a.row < b.row; });
    auto known = static_cast<ptrdiff_t>(to.size());
    const auto& terms = first < index_.cards_ ? terms_of_cards_ : terms_of_kernels_;
    auto hits = index_.words_.search(terms, depth, [&](size_t row) {
      return row >= first && row < last && lift_of(row) != left_out;
    });
    for (size_t i = 0; i < hits.size(); ++i) {
      auto row = hits[i].row;
      auto worth = index_.weights_.words * value(i);
      auto at = std::lower_bound(to.begin(), to.begin() + known, row, by_row);
      if (at != to.begin() + known && at->row == row)
        at->fused += worth;
      else
        to.push_back({row, index_.vectors_.score(vector_, row), worth});
    }
  }

  // -- choosing ---------------------------------------------------------------------------------

  bool is_good(const candidate& x) const {
    return x.cosine >= good_cosine ||
           (!operators_.empty() && shares_name(index_.entries_[x.row].operators, operators_));
  }

  /// Reads as many of a ranking as one stage needs.
  expected<void> fill(stage now) {
    size_t first = now == stage::cards ? 0 : index_.cards_;
    size_t last = now == stage::cards ? index_.cards_ : index_.size();
    if (is_full() || first == last) return {};
    const auto answer_before = answer_;
    const auto shown_before = shown_;
    // Most queries need a few rows more than they show: those that the leak guard withholds, and
    // kernels that repeat a better one.
    for (size_t depth = 32 + 4 * most_;; depth *= 8) {
      auto found = rank(first, last, depth);
      KM_TRY(found);
      answer_ = answer_before;
      shown_ = shown_before;
      choose(*found, now);
      if (is_full() || found->is_all) return {};
      if (now == stage::good_kernels && found->rest_is_far) return {};
      if (depth >= deepest && 2 * (answer_.withheld - answer_before.withheld) < depth) return {};
    }
  }

  void choose(const ranking& from, stage now) {
    std::vector<const candidate*> of_shown_signature;
    for (const auto& x : from.best_first) {
      if (is_full()) return;
      if (now != stage::cards && is_good(x) != (now == stage::good_kernels)) continue;
      if (!may_show(x)) continue;
      if (now == stage::good_kernels && is_signature_shown(x.row))
        of_shown_signature.push_back(&x);
      else
        show(x);
    }
    for (const auto* x : of_shown_signature)
      if (!is_full() && !repeats(x->row)) show(*x);
  }

  bool may_show(const candidate& x) {
    const auto& entry = index_.entries_[x.row];
    auto kernel = x.row < index_.cards_ ? std::string_view{} : entry.text.view();
    // What solves no task by its row has a name of its own: "own/19_ReLU".
    std::string_view task = entry.task.empty() && !kernel.empty() ? entry.source : entry.task;
    if (!query_.exclude_task.empty() &&
        (asks_for_the_same(entry) ||
         index_.guard_.withholds(asks_, {task, entry.reference, entry.signature, kernel,
                                         entry.own_signature, index_.shingles(x.row).get()}))) {
      ++answer_.withheld;
      return false;
    }
    return x.row < index_.cards_ || !repeats(x.row);
  }

  /// Two tasks of one family with one declaration ask for the same under different verbs. The run
  /// may have one of them alone, and no relation of the two.
  bool asks_for_the_same(const index_entry& x) const {
    return !excluded().empty() && x.reference == excluded() &&
           (query_.family.empty() || x.families.empty() || is_among(x.families, query_.family));
  }

  bool repeats(size_t row) const {
    if (shown_.empty()) return false;
    auto own = index_.shingles(row);
    return std::any_of(shown_.begin(), shown_.end(), [&](size_t other) {
      return other >= index_.cards_ && near_duplicate(*index_.shingles(other), *own);
    });
  }

  bool is_signature_shown(size_t row) const {
    auto signature = index_.entries_[row].signature.view();
    return std::any_of(shown_.begin(), shown_.end(), [&](size_t other) {
      return same_computation(index_.entries_[other].signature, signature);
    });
  }

  void show(const candidate& x) {
    shown_.push_back(x.row);
    answer_.results.push_back({index_.entries_[x.row], double{x.cosine} + lift_of(x.row)});
  }

  const loaded_index& index_;
  const retrieval_query& query_;
  asking_task asks_;
  size_t most_;
  uint16_t family_, backend_, language_; ///< numbers of names; 0: not asked for
  std::vector<float> vector_;
  term_list terms_of_kernels_, terms_of_cards_; ///< that each of the two are searched by
  std::vector<std::string> operators_;          ///< of the query's reference; the rarer ones
  retrieval_answer answer_;
  std::vector<size_t> shown_; ///< rows of the answer
};

expected<retrieval_answer> loaded_index::query(const retrieval_query& x) const {
  return index_search{*this, x}.run();
}

} // namespace kernelmill
