#include "gpu/sandbox/landlock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

tl::unexpected<error> cannot(const std::string& what) {
  int cause = errno;
  return infrastructure_error("landlock_failed",
                              "failed to " + what + " for Landlock: " + std::strerror(cause),
                              "see kernelmill doctor");
}

// 0 where there is none. All that we ask for always, the first can say.
long landlock_version() {
  return std::max(
      0L, ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

constexpr uint64_t access_refer = 1u << 13; // LANDLOCK_ACCESS_FS_REFER, of version 2

expected<descriptor> allow_writing_below(const char* path, const descriptor& rules,
                                         uint64_t more = 0) {
  descriptor directory{::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return cannot(std::string{"open "} + path);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE | more;
  rule.parent_fd = directory.get();
  if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return cannot(std::string{"allow "} + path);
  return directory;
}

} // namespace

expected<bool> enter_candidate_landlock(bool may_rename) {
  auto version = landlock_version();
  if (version == 0) return false;
  uint64_t rename = may_rename && version >= 2 ? access_refer : 0;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | rename;
  descriptor rules{
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0))};
  if (!rules) return cannot("create rules");
  KM_TRY(allow_writing_below("/dev", rules));
  KM_TRY(allow_writing_below("/tmp", rules, rename));
  // The driver names its threads by writing below /proc/self, and gives up when it cannot.
  auto own = allow_writing_below("/proc/self/", rules);
  KM_TRY(own);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return cannot("renounce privileges");
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) return cannot("enter rules");
  // A rule is about an inode, and /proc makes another one for the same directory when memory was
  // short in between; not while it is open.
  (void)own->release();
  return true;
}

} // namespace kernelmill
