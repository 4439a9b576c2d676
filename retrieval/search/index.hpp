#pragma once

// The retrieval index: what a prompt may quote. It holds knowledge cards and verified kernels,
// each with a vector, and it is a folder of three files:
//
//   entries.rows    what the results show
//   vectors.rows    one vector an entry
//   manifest.json   written last: the embedder's identity, the dimension, the digest of the cards
//                   and the digests of the two other files, which are mapped; opening checks all
//
// Kernels that are verified while a run goes on are added in memory (add_kernel), and kept in a
// file beside these three (retrieval/corpora/live_kernels.hpp).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/guard/leak_guard.hpp"
#include "retrieval/search/embedder.hpp"
#include "retrieval/search/shared_text.hpp"
#include "retrieval/search/vector_index.hpp"

namespace kernelmill {

/// A kernel that prompts may show: the candidate of an accepted turn, or a row of a corpus.
struct kernel_example {
  std::string id;              ///< the turn that verified it, or "kernelbook/17"
  std::string task;            ///< what it solves; of a row of a corpus its name there, or empty
  std::string operator_family; ///< empty: not known
  std::string backend = "cpu";
  std::string source;           ///< its code
  std::string language = "cpp"; ///< of `source`, as a fence names it: cpp, cuda, hip, python
  std::string reference;        ///< the computation that it replaces, in PyTorch; may be empty
  double speedup = 0;           ///< lower bound; 0: nothing measured it
  std::string device;           ///< that measured it: "NVIDIA H200"; may be empty
  std::string date;             ///< of the measurement, "2026-11-30"; may be empty
  std::string origin;           ///< where it is from: "KernelBook", "flag-gems 5.0.2"; empty: a run
  std::string split;            ///< of its task: "dev" is held out, and never an example
  std::string rights_source;    ///< its licence counts; empty: by the task's id
  bool hidden = false;          ///< known to the leak guard alone: its licence forbids to show it

  bool is_shown() const { return !hidden && split != "dev"; }
};

struct index_manifest {
  uint32_t schema_version = 2;
  std::string embedder; ///< its identity
  size_t dimension = 0;
  std::string corpus_digest; ///< of the cards
  size_t cards = 0;
  size_t kernels = 0;
  std::string entries_digest;
  std::string vectors_digest;
};

struct index_options {
  std::string knowledge;               ///< folder of cards, e.g. configs/knowledge
  std::string directory;               ///< where the index goes; made when missing
  std::vector<kernel_example> kernels; ///< of a store
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
};

/// What examples are wanted for.
struct retrieval_query {
  std::string text;      ///< what the task asks for, in words
  std::string reference; ///< the computation itself as code; empty: words alone
  size_t count = 0;
  std::string exclude_task; ///< nothing that solves this task comes back; empty: no task
  std::string family;
  std::string backend;
  std::string language; ///< what kernels are written in: cpp, cuda, hip, triton; empty: any
};

struct retrieved {
  index_entry entry;
  double score = 0; ///< cosine plus the boosts
};

struct retrieval_answer {
  std::vector<retrieved> results; ///< best first
  uint32_t withheld = 0;          ///< entries that would stand among them but for the leak guard
};

/// Added to the cosine of an entry of the asking task's operator family, or for its backend. Small
/// against the spread of cosines, so that a good match of another family still wins.
inline constexpr double family_boost = 0.10;
inline constexpr double backend_boost = 0.05;

/// The most results that a query gives: examples share the prompt with the task.
inline constexpr size_t max_results = 32;

class loaded_index {
public:
  /// Holds entries in memory only; `embedding` must not be null.
  static expected<loaded_index> in_memory(const std::string& knowledge,
                                          const std::vector<kernel_example>& kernels,
                                          std::shared_ptr<embedder> embedding);

  /// The best entries that give no solution of the asking task away. Kernels that repeat a better
  /// one are left out.
  expected<retrieval_answer> query(const retrieval_query& x) const;

  /// Says which split the tasks of those kernels are in that do not name one.
  void name_splits(const std::function<std::string(const std::string& task)>& split_of);

  /// Adds a kernel and makes the leak guard know it as a solution of its task. Of the added ones of
  /// a task, a device and a language the fastest alone is an example: it hides the one that it
  /// beats. Answers false when it is there already, when it is no faster than that, or when it is
  /// not to be shown: then the leak guard alone knows it. When embedding fails, the leak guard
  /// knows it all the same.
  expected<bool> add_kernel(const kernel_example& x);

  /// An entry that no query gives from now on.
  void hide(size_t i);

  /// The guard can be told of solutions that are no entries (a task's baseline) and of tasks that
  /// share one.
  leak_guard& guard() { return guard_; }

  const index_manifest& manifest() const { return manifest_; }
  size_t size() const { return entries_.size(); }
  size_t kernels() const { return kernels_; }
  const index_entry& entry(size_t i) const { return entries_[i]; }

  /// Says whether a query waits for another process.
  bool blocking() const { return embedding_->blocking(); }

private:
  friend expected<index_manifest> build_index(const index_options&);
  friend expected<loaded_index> open_index(const std::string&, std::shared_ptr<embedder>,
                                           const std::string&);

  loaded_index(std::shared_ptr<embedder> embedding, vector_index vectors)
      : embedding_(std::move(embedding)), vectors_(std::move(vectors)) {}

  void take(index_entry x);
  bool knows(const std::string& id) const;
  retrieval_answer choose(const std::vector<neighbour>& ranked, size_t k,
                          const asking_task& asks) const;
  double boost_of(const index_entry& x, const std::string& family,
                  const std::string& backend) const;

  std::shared_ptr<embedder> embedding_;
  vector_index vectors_;
  leak_guard guard_;
  std::vector<index_entry> entries_;
  std::vector<shingle_set> shingles_; ///< of each entry's text
  std::unordered_set<std::string> ids_;
  std::unordered_set<size_t> hidden_;
  std::unordered_map<std::string, size_t> fastest_; ///< of the added kernels: see add_kernel
  index_manifest manifest_;
  size_t kernels_ = 0;
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
