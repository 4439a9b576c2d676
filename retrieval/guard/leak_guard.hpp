#pragma once

// The leak guard decides whether a text in the prompt of a task would reveal the task's own
// solution. A task's id alone is not enough: the same kernel may have been verified under another
// task, be written on a knowledge card, or come back with other names and another layout.
//
// Three things give a solution away: whose it is (the task, one that is related, a problem of the
// same name), what it computes (the operators of the code that it replaces, or of its own), and
// how it reads (a near duplicate of a known solution).
//
// Code is compared as sets of hashed 5-grams of tokens. Comments, layout and preprocessor lines
// do not count; names that are not called and number suffixes are folded, so that renaming hides
// nothing; what is called (`expf`, `_mm256_add_ps`) and all operators stay, so that two loops that
// do different things stay different.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace kernelmill {

/// Sorted, without duplicates.
using shingle_set = std::vector<uint64_t>;

/// Returns the hashed 5-grams of the normalized tokens of `code`; of shorter code, one hash of all.
shingle_set shingles_of(std::string_view code);

struct resemblance {
  double jaccard = 0;     ///< shared / all
  double containment = 0; ///< shared / those of the smaller set
};

resemblance compare(const shingle_set& a, const shingle_set& b);

struct leak_thresholds {
  double jaccard = 0.70;
  double containment = 0.85;
  size_t min_shingles = 24; ///< smaller sets are compared by jaccard only: any loop contains them
};

bool near_duplicate(const shingle_set& a, const shingle_set& b, const leak_thresholds& limits = {});

/// What the guard compares entries with: made once a query.
struct asking_task {
  std::string task;
  std::string name;      ///< see problem_name
  std::string signature; ///< of its computation; empty: none was recognized
  shingle_set reference; ///< of its computation as Python; empty: it is none
};

/// `reference` is the computation that the task asks for, as code; may be empty.
asking_task asking(std::string task, std::string_view reference);

/// The same where the reference was read already: `signature` is what reference_code has of it.
asking_task asking(std::string task, std::string_view reference, std::string signature);

/// What an entry shows of itself.
struct guarded_entry {
  std::string_view task;                ///< that it was verified for; empty: none
  std::string_view reference;           ///< the computation that it replaces, as code; may be empty
  std::string_view reference_signature; ///< see reference_code; empty: none
  std::string_view kernel;              ///< its code; empty: it is no kernel
  std::string_view kernel_signature;
  const shingle_set* shingles{}; ///< of its text
};

/// What a problem is called, without its number, suite, language and version: "relu" of
/// "kernelbench/level1/19_ReLU" and of "relu_cuda_v2.cu". Empty for names that say nothing.
std::string problem_name(std::string_view task);

/// Says whether two signatures of reference_code are of the same computation, in any order of its
/// operators; of long ones a tenth may differ.
bool nearly_same_computation(std::string_view a, std::string_view b);

/// Says whether code computes what the task asks for: by its operators, which are those of
/// `signature`, or by its text where they were not recognized.
bool computes_the_same(const asking_task& asks, std::string_view code, std::string_view signature);

class leak_guard {
public:
  explicit leak_guard(leak_thresholds limits = {}) : limits_(limits) {}

  /// Remembers a text that solves `task`; near-identical ones cost nothing more.
  void add_solution(const std::string& task, std::string_view code);

  /// Says that what solves one of the two solves the other, e.g. the same operator asked for
  /// under another verb. Relations chain.
  void relate(const std::string& task, const std::string& other);

  /// All tasks that are related to `task`, itself among them.
  std::vector<std::string> related(const std::string& task) const;

  /// Says whether an entry that was verified for `entry_task` (empty: none) and reads as `code`
  /// gives away a solution of `asking_task`.
  bool withholds(const std::string& asking_task, const std::string& entry_task,
                 const shingle_set& code) const;

  /// Says the same of what an entry shows of itself, its comments too. Reads its code, which takes
  /// tens of microseconds: ask of entries that would be shown.
  bool withholds(const asking_task& asks, const guarded_entry& x) const;

  /// Solutions that it remembers of all tasks.
  size_t solutions() const;

private:
  struct known {
    std::vector<shingle_set> solutions;
    std::unordered_set<uint64_t> all; ///< the union, which rules most entries out at once
  };

  std::string root_of(const std::string& task) const;
  bool resembles(const known& x, const shingle_set& code) const;

  leak_thresholds limits_;
  std::map<std::string, known> tasks_;         ///< by the root of the task's relations
  std::map<std::string, std::string> related_; ///< towards the root
};

} // namespace kernelmill
