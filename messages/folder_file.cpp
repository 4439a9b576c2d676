#include "messages/folder_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

// O_NONBLOCK: a pipe without a writer is refused, not waited for.
constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// For kernels and containers without openat2: a link that is changed in between is followed.
descriptor open_checked(const std::string& folder, const std::string& name) {
  std::error_code problem;
  auto base = fs::canonical(folder, problem);
  auto path = problem ? fs::path{} : fs::canonical(base / name, problem);
  if (problem) {
    errno = problem.value();
    return {};
  }
  auto below = path.lexically_relative(base);
  if (below.empty() || *below.begin() == "..") {
    errno = EXDEV;
    return {};
  }
  return descriptor{::open(path.c_str(), flags | O_NOFOLLOW)};
}

descriptor open_beneath(const std::string& folder, const std::string& name) {
  descriptor base{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!base) return {};
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  descriptor file{
      static_cast<int>(::syscall(SYS_openat2, base.get(), name.c_str(), &how, sizeof how))};
  if (!file && (errno == ENOSYS || errno == EPERM)) return open_checked(folder, name);
  return file;
}

} // namespace

expected<std::string> read_in_folder(const std::string& folder, const std::string& name,
                                     uint64_t most) {
  auto fail = [&](const char* category, const std::string& cause, const std::string& hint) {
    return configuration_error(category, "failed to read " + folder + "/" + name + ": " + cause,
                               hint);
  };
  auto file = open_beneath(folder, name);
  if (!file && (errno == EXDEV || errno == ELOOP))
    return fail("bad_task", "it is a link that leads out of its folder",
                "put the file itself into the folder");
  if (!file)
    return fail("missing_file", std::strerror(errno),
                "docs/reference/tasks.md lists the files of a task");
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return fail("bad_task", "it is no regular file", "put a file there");
  if (static_cast<uint64_t>(facts.st_size) > most)
    return fail("bad_task", "it is larger than " + std::to_string(most >> 20) + " MiB", {});
  auto text = read_whole(file.get());
  if (!text) return fail("missing_file", std::strerror(errno), {});
  return std::move(*text);
}

bool is_in_folder(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(fs::path{folder} / name, ignored));
}

} // namespace kernelmill
