#pragma once

// The retrieval index: what a prompt may quote. It holds knowledge cards and verified kernels,
// each with a vector and its words, and it is a folder of four files:
//
//   entries.rows    what the results show
//   vectors.rows    one vector an entry
//   words.rows      the entries of each word and operator
//   manifest.json   written last: the embedder's identity, the dimension, the digest of the cards
//                   and the digests of the other files, which are mapped; opening checks all
//
// Cards come first in all of them. Kernels that are verified while a run goes on are added in
// memory (add_kernel), and kept in a file beside these (retrieval/search/live_kernels.hpp).
// Queries may run in several threads at once while no kernel is added.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/corpora/kernel_example.hpp"
#include "retrieval/guard/leak_guard.hpp"
#include "retrieval/search/bm25.hpp"
#include "retrieval/search/embedder.hpp"
#include "retrieval/search/row_facts.hpp"
#include "retrieval/search/shared_text.hpp"
#include "retrieval/search/vector_index.hpp"

namespace kernelmill {

struct index_manifest {
  uint32_t schema_version = 3;
  std::string embedder; ///< its identity
  size_t dimension = 0;
  std::string corpus_digest; ///< of the cards
  size_t cards = 0;
  size_t kernels = 0;
  std::string entries_digest;
  std::string vectors_digest;
  std::string words_digest;
};

struct index_options {
  std::string knowledge;               ///< folder of cards; empty: an index without cards
  std::string directory;               ///< where the index goes; made when missing
  std::vector<kernel_example> kernels; ///< of runs and corpora
  std::shared_ptr<embedder> embedding; ///< null: the built-in lexical embedder
};

struct index_entry {
  std::string id;   ///< "card:ID" or "kernel:" and its example's id
  std::string kind; ///< "card" or "kernel"
  std::string title;
  shared_text text;
  std::string source;                ///< a card's file, or the turn that verified the kernel
  std::string task;                  ///< empty for cards
  std::vector<std::string> families; ///< empty: about all
  std::vector<std::string> backends;
  double speedup = 0;
  std::string language;      ///< of a kernel's text, as a fence names it
  std::string split;         ///< of a kernel's task; empty: an older index does not say
  std::string rights_source; ///< its licence counts; empty: by the task's id
  shared_text reference;     ///< the computation that a kernel replaces, in PyTorch; may be empty
  std::string device;
  std::string date;
  std::string origin;
  std::string written_in;    ///< what a kernel is: "triton" and "cuda" may be Python to a fence
  shared_text operators;     ///< of its reference, with blanks between them
  shared_text signature;     ///< of its reference (retrieval/code/reference_code.hpp)
  shared_text own_signature; ///< of a kernel in Python
};

/// What examples are wanted for.
struct retrieval_query {
  std::string text;      ///< what the task asks for, in words
  std::string reference; ///< the computation itself as code; empty: words alone
  size_t count = 0;
  std::string exclude_task; ///< nothing that solves this task comes back; empty: no task
  std::string family;
  std::string backend;  ///< what is for another one alone is left out; empty: nothing is
  std::string language; ///< what kernels are written in: cpp, cuda, hip, triton; empty: any
  std::string exclude_reference; ///< the computation of that task as code; empty: `reference`
};

/// How much of what counts in a query.
struct retrieval_weights {
  double code = 0.7;  ///< share of the reference in the query's vector; the words have the rest
  double words = 2.0; ///< of the ranks by words beside those by vectors; 0: by vectors alone
};

struct retrieved {
  index_entry entry;
  double score = 0; ///< cosine plus the boosts; the order is that of two rankings in one
};

struct retrieval_answer {
  std::vector<retrieved> results; ///< best first
  uint32_t withheld = 0;          ///< entries that would stand among them but for the leak guard
};

/// Added to the cosine of an entry of the asking task's operator family, or for its backend. Small
/// against the spread of cosines, so that a good match of another family still wins.
inline constexpr double family_boost = 0.10;
inline constexpr double backend_boost = 0.05;

/// A kernel with this cosine stands before every card, and so does one that shares an operator with
/// the query's reference that less than a fourth of all kernels have. Others stand behind all
/// cards.
inline constexpr double good_cosine = 0.20;

/// The most results that a query gives: examples share the prompt with the task.
inline constexpr size_t max_results = 32;

class loaded_index {
public:
  /// Holds entries in memory only; `embedding` must not be null. `knowledge` is a folder of cards,
  /// or empty: no cards.
  static expected<loaded_index> in_memory(const std::string& knowledge,
                                          const std::vector<kernel_example>& kernels,
                                          std::shared_ptr<embedder> embedding);
  loaded_index(loaded_index&&) noexcept;
  loaded_index& operator=(loaded_index&&) noexcept;
  ~loaded_index();

  /// The best entries that give no solution of the asking task away: kernels first. Kernels that
  /// repeat a better one are left out; of those with one signature the best alone comes, while
  /// there are others.
  expected<retrieval_answer> query(const retrieval_query& x) const;

  void weigh(const retrieval_weights& x) { weights_ = x; }

  /// Says which split the tasks of those kernels are in that do not name one.
  void name_splits(const std::function<std::string(const index_entry&)>& split_of);

  /// Adds a kernel and makes the leak guard know it as a solution of its task. Of the added ones of
  /// a task, a device and a language the fastest alone is an example: it hides the one that it
  /// beats. Answers false when it is there already, when it is no faster than that, or when it is
  /// not to be shown: then the leak guard alone knows it. When embedding fails, the leak guard
  /// knows it all the same.
  expected<bool> add_kernel(const kernel_example& x);

  /// An entry that no query gives from now on.
  void hide(size_t i);

  /// The guard can be told of solutions that are no entries (a task's baseline) and of tasks that
  /// share one; before queries begin, or between them.
  leak_guard& guard();

  const index_manifest& manifest() const { return manifest_; }
  size_t size() const { return entries_.size(); }
  size_t cards() const { return cards_; }
  size_t kernels() const { return entries_.size() - cards_ - hidden_kernels_; }
  const index_entry& entry(size_t i) const { return entries_[i]; }

  /// False of what is held out or retracted, and of a live kernel that a faster one replaced.
  bool may_show(size_t i) const { return !facts_.rows[i].hidden; }

  /// Says whether a query waits for another process.
  bool blocking() const { return embedding_->blocking(); }

private:
  friend expected<index_manifest> build_index(const index_options&);
  friend expected<loaded_index> open_index(const std::string&, std::shared_ptr<embedder>,
                                           const std::string&);
  friend class index_search;
  struct remembered; ///< what queries leave behind

  loaded_index(std::shared_ptr<embedder> embedding, vector_index vectors, bm25_index words);

  /// REQUIRES: cards come first.
  void take(index_entry x);
  void teach(const std::string& task) const;
  std::shared_ptr<const shingle_set> shingles(size_t row) const;

  std::shared_ptr<embedder> embedding_;
  vector_index vectors_;
  bm25_index words_;
  retrieval_weights weights_;
  mutable leak_guard guard_; ///< learns what entries solve when a task first asks
  std::vector<index_entry> entries_;
  fact_table facts_;
  std::unordered_set<std::string> ids_;             ///< filled by the first add_kernel
  std::unordered_map<std::string, size_t> fastest_; ///< of the added kernels: see add_kernel
  index_manifest manifest_;
  size_t cards_ = 0;
  size_t hidden_kernels_ = 0; ///< by hide()
  std::unique_ptr<remembered> remembered_;
};

/// Builds the index and writes it; an old one in the same folder is replaced.
expected<index_manifest> build_index(const index_options& options);

/// Opens what build_index wrote. Without `embedding`, the manifest's built-in embedder is used;
/// with `knowledge`, the cards there must be the ones that the index was built from. Fails with
/// category "index_missing", "index_mismatch" (another embedder or other cards), "index_damaged"
/// or "newer_schema".
expected<loaded_index> open_index(const std::string& directory,
                                  std::shared_ptr<embedder> embedding = nullptr,
                                  const std::string& knowledge = {});

} // namespace kernelmill
