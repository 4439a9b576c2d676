// Gives a target every file of some folders, and shapes that break parsers which recurse or grow: a
// regression test of each corpus without a fuzzer.
//   fuzz_replay TARGET [FILE|FOLDER ...]
// An input that ends the process is named before it is tried, so the last name is the culprit's.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;
using namespace kernelmill::fuzz;

const std::map<std::string, target_function> targets = {
    {"answer", answer},
    {"api", api},
    {"batch", batch},
    {"bundle", bundle},
    {"compiler", compiler},
    {"completion", completion},
    {"config", config},
    {"eval_results", eval_results},
    {"frames", frames},
    {"helpers", helpers},
    {"http", http},
    {"imports", imports},
    {"launch_plan", launch_plan},
    {"parcels", parcels},
    {"profilers", profilers},
    {"script", script},
    {"settings", settings},
    {"store", store},
    {"stream", stream},
    {"task", task},
    {"torch", torch},
    {"ws", ws},
};

std::string repeated(std::string_view what, size_t bytes) {
  std::string result;
  result.reserve(bytes + what.size());
  while (result.size() < bytes) result += what;
  return result;
}

struct shape {
  std::string name;
  std::string bytes;
};

// Each also as the value of a key or behind words that the parsers of the targets know.
std::vector<shape> hostile_shapes() {
  constexpr size_t many = 1 << 18;
  std::vector<shape> result = {{"nothing", ""}, {"a zero byte", std::string(1, '\0')}};
  for (std::string_view one : {"[", "{\"a\":", "(", "<think>", "```\n", "\n", "\r", " ", "\"", "\\",
                               "/*", "//", "-", "9", "\xff", "\xf4\x90\x80\x80", "data: ", "a,"})
    result.push_back({"many bytes of " + std::string{one}, repeated(one, many)});
  auto deep = repeated("[", many);
  for (std::string_view key :
       {"{\"error\":{\"message\":", "{\"detail\":", "{\"choices\":", "{\"tasks\":", "{\"replies\":",
        "{\"requests\":", "{\"policy\":", "{\"1\":", "{\"id\":", "{\"data\":", "[{\"a\":"})
    result.push_back({"a deep value of " + std::string{key}, std::string{key} + deep});
  // The same, well formed: some parsers look no further than the first error.
  for (std::string_view key :
       {"{\"error\":{\"message\":", "{\"detail\":", "{\"policy\":", "{\"tasks\":", "{\"task\":",
        "{\"1\":", "{\"trials\":", "{\"id\":", "{\"stage\":", "{\"messages\":", "{\"kind\":"})
    result.push_back(
        {"a deep value that ends of " + std::string{key},
         std::string{key} + deep + repeated("]", many) +
             std::string(static_cast<size_t>(std::count(key.begin(), key.end(), '{')), '}') +
             "\n"});
  return result;
}

std::string content_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> files_of(int count, char** names) {
  std::vector<fs::path> result;
  for (int i = 0; i < count; ++i) {
    if (!fs::is_directory(names[i])) {
      if (fs::exists(names[i])) result.emplace_back(names[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator{names[i]})
      if (entry.is_regular_file()) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

void try_one(target_function run, const std::string& name, const std::string& bytes) {
  std::printf("%s (%zu bytes)\n", name.c_str(), bytes.size());
  std::fflush(stdout);
  run(bytes);
}

} // namespace

int main(int argc, char** argv) {
  auto found = argc > 1 ? targets.find(argv[1]) : targets.end();
  if (found == targets.end()) {
    std::fputs("usage: fuzz_replay TARGET [FILE|FOLDER ...]\n", stderr);
    return 2;
  }
  auto files = files_of(argc - 2, argv + 2);
  for (const auto& file : files) try_one(found->second, file.string(), content_of(file));
  auto shapes = hostile_shapes();
  for (const auto& x : shapes) try_one(found->second, x.name, x.bytes);
  std::printf("%zu files and %zu shapes: all well\n", files.size(), shapes.size());
  return 0;
}
