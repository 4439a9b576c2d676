// What a model wrote.

#include "actors/episode/clean_text.hpp"
#include "actors/episode/completion_parser.hpp"
#include "actors/episode/fence.hpp"
#include "actors/episode/patch/normalized.hpp"
#include "actors/episode/unchanged.hpp"
#include "gpu/task/launch_plan.hpp"
#include "messages/base/utf8.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

constexpr size_t most = 4096; // of a kernel: small enough for a fuzzer to reach

bool is_blank(std::string_view x) {
  return x.find_first_not_of(" \t\r\n") == x.npos;
}

void check_parsed(std::string_view bytes, const parsed_completion& x) {
  promise(x.ok || !x.problems.empty(), "a completion that is refused is told why");
  if (!x.ok) return;
  promise(x.kernel.size() <= most, "a kernel is within the limit");
  promise(!is_blank(x.kernel), "a kernel is not empty");
  promise(bytes.substr(x.kernel_begin, x.kernel.size()) == x.kernel,
          "a kernel is where it is said to be");
  promise(is_utf8(x.kernel) && x.kernel.find('\0') == x.kernel.npos, "a kernel is clean text");
  promise(first_bad_byte(bytes) == bytes.npos, "a completion that is taken is clean text");
  has_launch_lines(x.kernel);
}

} // namespace

void completion(std::string_view bytes) {
  auto x = parse_completion(bytes, most);
  check_parsed(bytes, x);
  auto again = parse_completion(bytes, most);
  promise(x.ok == again.ok && x.kernel == again.kernel, "a completion means one thing");
  for (const auto& problem : x.problems) promise(!problem.empty(), "a problem has words");
  std::string shown;
  append_clean(shown, bytes, 1000);
  promise(is_utf8(shown), "what is shown is UTF-8");
  promise(shown.find_first_of(std::string_view{"\0\x1b\x07\x08\r", 5}) == shown.npos,
          "what is shown has no control bytes");
  size_t from = 0;
  while (auto block = next_fence(bytes, from)) {
    promise(block->end > from, "each block ends behind where it was looked for");
    from = block->end;
    language_of(block->info);
  }
  auto plain = normalized_cpp(bytes);
  promise(plain.size() <= bytes.size() + 1, "what is left out makes a source no longer");
  normalized_python(bytes);
  only_fence(bytes);
  trim_lines(bytes);
}

} // namespace kernelmill::fuzz
