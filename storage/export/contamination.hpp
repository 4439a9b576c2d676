#pragma once

// Contamination of an export: code of held-out tasks that stands in `train` too, and answers that
// repeat a retrieved example. What "nearly the same" means is the caller's; see
// retrieval/guard/near_duplicates.hpp.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernelmill::exports {

enum class on_contamination : unsigned char {
  report,
  drop, ///< the groups of train, and the rows that repeat an example
  refuse
};

/// Compares code. Memory is bounded: what does not fit is counted as `dropped`.
class code_memory {
public:
  virtual ~code_memory() = default;

  /// Remembers a code of a held-out task under a name.
  virtual void remember(const std::string& code, const std::string& name) = 0;
  /// The name of one that it nearly repeats.
  virtual std::optional<std::string> find(const std::string& code) = 0;
  virtual bool similar(const std::string& a, const std::string& b) = 0;
  virtual uint64_t remembered() const = 0;
  virtual uint64_t dropped() const = 0;
};

struct contamination_check {
  std::shared_ptr<code_memory> memory; ///< null: nothing is looked for
  on_contamination then = on_contamination::report;
};

struct contamination_report {
  bool looked = false;
  uint64_t held_out = 0;       ///< codes of dev that train was compared with
  uint64_t not_compared = 0;   ///< codes of dev that did not fit
  uint64_t compared = 0;       ///< codes of train
  uint64_t train_like_dev = 0; ///< train kernels that near-duplicate a dev kernel
  uint64_t answers_like_example = 0;
  struct pair {
    std::string what, like;
  };
  std::vector<pair> examples; ///< the first of each, for people
};

/// The kernels that the retriever put into a prompt: blocks of code behind the titles of
/// kernels, without the code of what they compute.
/// `prompt` is the text of a message.
std::vector<std::string> example_kernels(const std::string& prompt);

} // namespace kernelmill::exports
