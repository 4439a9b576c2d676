#include <algorithm>
#include <array>
#include <vector>

#include "retrieval/code/reference_code.hpp"
#include "retrieval/guard/leak_guard.hpp"
#include "retrieval/guard/near_duplicates.hpp"

namespace kernelmill {

namespace {

constexpr size_t long_computation = 12; // operators
constexpr double long_resemblance = 0.9;

constexpr std::array<std::string_view, 17> of_versions = {
    "baseline", "c",   "cpp",       "cu", "cuda",   "cute",  "hip",    "kernel",  "kernels",
    "new",      "opt", "optimized", "py", "python", "torch", "triton", "tilelang"};

constexpr std::array<std::string_view, 10> say_nothing = {
    "block", "code", "forward", "fn", "model", "module", "net", "problem", "solution", "task"};

template <size_t n>
bool holds_word(const std::array<std::string_view, n>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_number(std::string_view x) {
  return !x.empty() && x.find_first_not_of("0123456789") == x.npos;
}

} // namespace

std::string problem_name(std::string_view task) {
  task.remove_prefix(std::min(task.rfind('/') + 1, task.size()));
  std::string result, word;
  bool first = true;
  auto end_word = [&] {
    bool version = word.size() > 1 && word[0] == 'v' && is_number(std::string_view{word}.substr(1));
    // A number in front is the problem's, one behind belongs to the name: "conv 2".
    bool counts =
        !word.empty() && !(first && is_number(word)) && !version && !holds_word(of_versions, word);
    if (counts) result += word;
    if (!word.empty()) first = false;
    word.clear();
  };
  for (char c : task) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      word += c;
    else
      end_word();
  }
  end_word();
  if (result.size() < 2 || is_number(result) || holds_word(say_nothing, result)) return {};
  return result;
}

bool nearly_same_computation(std::string_view a, std::string_view b) {
  if (same_computation(a, b)) return true;
  if (a.empty() || b.empty()) return false;
  auto x = operators_of(a), y = operators_of(b);
  std::vector<std::string_view> shared;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(shared));
  auto all = x.size() + y.size() - shared.size();
  if (shared.size() == all) return true;
  return std::min(x.size(), y.size()) >= long_computation &&
         static_cast<double>(shared.size()) >= long_resemblance * static_cast<double>(all);
}

asking_task asking(std::string task, std::string_view reference) {
  return asking(std::move(task), reference,
                is_torch_code(reference) ? read_reference(reference).signature : std::string{});
}

asking_task asking(std::string task, std::string_view reference, std::string signature) {
  asking_task result;
  result.name = problem_name(task);
  result.task = std::move(task);
  if (!is_torch_code(reference)) return result;
  result.signature = std::move(signature);
  result.reference = shingles_of_code(reference);
  return result;
}

bool computes_the_same(const asking_task& asks, std::string_view code, std::string_view signature) {
  if (asks.reference.empty() || !is_torch_code(code)) return false;
  if (!signature.empty() && !asks.signature.empty())
    return nearly_same_computation(asks.signature, signature);
  // Where one of the two calls what nothing defines, the text is compared. With operators read in
  // both it would add wrong answers alone: problems of one author differ by a word.
  return near_duplicate(asks.reference, shingles_of_code(code));
}

} // namespace kernelmill
