#include "launch/server/page/settled.hpp"

#include <ctime>

#include <fmt/format.h>
#include <sys/stat.h>

#include "storage/run_directory.hpp"

namespace kernelmill::page {

namespace {

// File systems keep times in steps of up to 2 s, and clocks of two machines differ.
constexpr time_t settles_s = 10;

} // namespace

std::string stamp_of_settled(const std::string& root, const std::string& name) {
  if (!is_run_name(name)) return {};
  run_directory run;
  run.path = root + "/" + name;
  struct stat about {};
  if (::stat(run.control_socket().c_str(), &about) == 0) return {}; // its process may be there
  if (::stat(run.manifest_file().c_str(), &about) != 0) return {};
  std::string result;
  auto now = std::time(nullptr);
  // A shared store lies elsewhere; each of its commits is in the run's own journal, too.
  for (const auto& file : {run.path, run.manifest_file(), run.config_file(), run.metrics_file(),
                           run.traces_file(), run.path + "/tags.json", run.path + "/notes.jsonl",
                           run.path + "/lineage/data.mdb", run.logs()}) {
    about = {};
    if (::stat(file.c_str(), &about) == 0 && about.st_mtime > now - settles_s) return {};
    result += fmt::format("{}.{}.{};", about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }
  return result;
}

} // namespace kernelmill::page
