#include "gpu/sandbox/landlock.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/process/descriptor.hpp"

namespace kernelmill {

namespace {

tl::unexpected<error> cannot(const std::string& what) {
  int cause = errno;
  return infrastructure_error("landlock_failed",
                              "failed to " + what + " for Landlock: " + std::strerror(cause),
                              "see kernelmill doctor");
}

// The first version of the interface can say all that we ask, so no other is looked for.
bool has_landlock() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
}

expected<descriptor> allow_writing_below(const char* path, const descriptor& rules) {
  descriptor directory{::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return cannot(std::string{"open "} + path);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE;
  rule.parent_fd = directory.get();
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return cannot(std::string{"allow "} + path);
  return directory;
}

} // namespace

expected<bool> enter_candidate_landlock() {
  if (!has_landlock()) return false;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE;
  descriptor rules{
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0))};
  if (!rules) return cannot("create rules");
  for (auto* path : {"/dev", "/tmp"})
    if (auto allowed = allow_writing_below(path, rules); !allowed)
      return tl::unexpected{allowed.error()};
  // The driver names its threads by writing below /proc/self, and gives up when it cannot.
  auto own = allow_writing_below("/proc/self/", rules);
  if (!own) return tl::unexpected{own.error()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return cannot("renounce privileges");
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) return cannot("enter rules");
  // A rule is about an inode, and /proc makes another one for the same directory when memory was
  // short in between; not while it is open.
  (void)own->release();
  return true;
}

} // namespace kernelmill
