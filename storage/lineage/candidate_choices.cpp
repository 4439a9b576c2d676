#include "storage/lineage/candidate_choices.hpp"

#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace {

std::string file_of_choices(const run_directory& run) {
  return run.path + "/choices.jsonl";
}

} // namespace

expected<void> add_choice(const run_directory& run, const candidate_choice& x) {
  auto path = file_of_choices(run);
  // A line of its own behind what a writer that was killed left of one.
  auto line = "\n" +
              json_line({{"episode", x.episode},
                         {"candidate", x.candidate},
                         {"status", x.status},
                         {"by", "human"},
                         {"note", x.note},
                         {"at", x.at}}) +
              "\n";
  descriptor file{::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
  if (!file) return tl::unexpected<error>{file_error(errno, "write", path)};
  // One write of a short line: those of two commands do not mix.
  auto done = ::write(file.get(), line.data(), line.size());
  if (done != static_cast<ssize_t>(line.size()) || ::fsync(file.get()) != 0)
    return tl::unexpected<error>{file_error(done < 0 ? errno : ENOSPC, "write", path)};
  return {};
}

expected<std::map<std::string, candidate_choice>> choices_of(const run_directory& run,
                                                             const std::string& episode) {
  std::map<std::string, candidate_choice> result;
  auto text = read_file(file_of_choices(run));
  if (!text && text.error().category == "not_found") return result;
  KM_TRY(text);
  std::istringstream lines{*text};
  for (std::string line; std::getline(lines, line);) {
    auto x = nlohmann::json::parse(line, nullptr, false);
    if (!x.is_object() || text_in(x, "episode") != episode) continue;
    candidate_choice choice{episode, text_in(x, "candidate"), text_in(x, "status"),
                            text_in(x, "note"), number_in(x, "at")};
    if (choice.status == "promoted")
      std::erase_if(result, [](const auto& y) { return y.second.status == "promoted"; });
    result[choice.candidate] = std::move(choice);
  }
  return result;
}

} // namespace kernelmill
