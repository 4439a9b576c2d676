#pragma once

// Whether an answer is a copy of what we showed. The comparison ignores comments, spaces and
// docstrings alone: a renamed variable makes another answer.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

/// The code that a policy was shown, made ready to be compared with many answers: what the task
/// brings, its baseline's file included, and every fenced block of the episode's first prompt and
/// of what its tools found. Thread safety: a value; any number of threads may compare.
class shown_code {
public:
  shown_code(const task& x, std::string_view prompt);

  /// Adds every fenced block of a text that the policy was shown later.
  void show(std::string_view text);

  /// What an answer is a copy of: "the starter", "the baseline", "the problem's own model", "an
  /// example of the prompt", "what a tool found" or, of several texts, "what was shown"; empty: of
  /// nothing. A copy of a part of an example whose end was left out may end as it likes.
  std::string copied_in(std::string_view answer) const;

private:
  struct block {
    const char* what;
    std::string cpp;                  ///< normalized; of device code its launches
    std::set<std::string> statements; ///< that an answer may hold; of Python and device code
    std::string beginning;            ///< normalized, where the end was not shown
  };
  void add(const char* what, std::string_view code);
  void add_blocks(const char* what, std::string_view text);
  std::string copied_module(const std::string& normalized) const;

  bool python_;
  bool device_; ///< an answer's kernels are compared, for it has no host's function to launch them
  std::string function_; ///< that a module may define in place of ModelNew; may be empty
  std::vector<block> blocks_;
};

/// The same for one answer.
std::string copied_from(const task& x, std::string_view prompt, std::string_view answer);

} // namespace kernelmill
