#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

#include "gpu/sandbox/sandbox_parts.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// What a candidate needs of /usr; the rest (tasks, references, documents, tools) stays out.
constexpr const char* library_directories[] = {"/usr/lib", "/usr/lib64", "/usr/local/lib"};

// Not even a compiler needs these, and Kernelmill's own data may be installed there.
constexpr const char* hidden_directories[] = {"/usr/share", "/usr/local/share", "/usr/src"};

class arguments {
public:
  template <class... Ts>
  void add(const Ts&... xs) {
    (list.emplace_back(xs), ...);
  }
  std::vector<std::string> list;
};

void add_namespaces(arguments& out, bool root, bool forks_sandboxes) {
  out.add("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
          "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv");
  if (root)
    // The helper needs them to become somebody else, and loses them by it.
    out.add("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID");
  else
    out.add("--unshare-user", "--uid", "65534", "--gid", "65534");
  // The third right ends what has become another user, when the process that waits for it ends.
  if (forks_sandboxes && root) out.add("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_KILL");
  if (!forks_sandboxes && !root) out.add("--disable-userns");
}

void add_system(arguments& out, const sandbox_machine& machine, bool may_exec) {
  if (may_exec) {
    out.add("--ro-bind", "/usr", "/usr");
    for (auto* x : hidden_directories)
      if (fs::is_directory(x)) out.add("--tmpfs", x, "--remount-ro", x);
  } else {
    // By name, or bubblewrap makes them for root alone.
    out.add("--perms", "0755", "--dir", "/usr", "--perms", "0755", "--dir", "/usr/local");
    for (auto* x : library_directories)
      if (fs::is_directory(x)) out.add("--ro-bind", x, x);
  }
  for (auto& [name, target] : machine.links)
    if (may_exec || name.starts_with("/lib")) out.add("--symlink", target, name);
  for (auto& x : machine.system)
    if (may_exec || x.source.starts_with("/lib")) out.add("--ro-bind", x.source, x.target);
}

// Bubblewrap makes the directories above a target for their owner alone, who is root; the target
// runs as somebody else. Those that exist are left as they are.
void add_parents(arguments& out, std::set<fs::path>& made, const fs::path& target) {
  fs::path so_far = "/";
  for (auto& part : target.parent_path().relative_path()) {
    so_far /= part;
    if (so_far == "/usr" || so_far == "/proc" || so_far == "/dev") return;
    if (made.insert(so_far).second) out.add("--perms", "0755", "--dir", so_far.string());
  }
}

// Bubblewrap's own process stays as number 1. Without root it runs as the target's user, who could
// open its memory, and it has no filter but the outer one. Nothing inside needs to see it.
void hide_init(arguments& out) {
  out.add("--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1");
}

void add_mounts(arguments& out, const sandbox_machine& machine, const sandbox_spec& spec,
                const private_descriptors& fds) {
  std::set<fs::path> made{"/tmp"};
  add_parents(out, made, helper_path);
  out.add("--ro-bind", machine.helper, helper_path);
  for (auto& x : spec.mounts) {
    add_parents(out, made, x.target);
    out.add(x.writable ? "--bind" : "--ro-bind", x.source, x.target);
  }
  for (size_t i = 0; i < spec.files.size(); ++i) {
    add_parents(out, made, spec.files[i].target);
    out.add("--perms", "0444", "--ro-bind-data", std::to_string(fds.files[i]),
            spec.files[i].target);
  }
}

} // namespace

resource_limits default_limits() {
  resource_limits x;
  x.address_space = uint64_t{8} << 30;
  x.file_size = uint64_t{256} << 20;
  x.processes = 256;
  x.open_files = 256;
  return x;
}

resource_limits limits_of(const sandbox_spec& spec) {
  auto result = spec.limits;
  auto defaults = default_limits();
  for (auto member : {&resource_limits::address_space, &resource_limits::file_size,
                      &resource_limits::processes, &resource_limits::open_files})
    if (result.*member == 0) result.*member = defaults.*member;
  return result;
}

std::vector<std::string> bubblewrap_arguments(const sandbox_machine& machine,
                                              const sandbox_spec& spec,
                                              const private_descriptors& fds,
                                              const enter_arguments& enter) {
  arguments out;
  out.add(machine.bwrap);
  add_namespaces(out, machine.root, spec.forks_sandboxes);
  add_system(out, machine, spec.may_exec);
  // /dev is a file system in memory that the sandbox's user may own: nothing may be stored in it.
  out.add("--proc", "/proc", "--dev", "/dev");
  // The kernel lets nobody mount a /proc of its own who sees but a part of one.
  if (!spec.forks_sandboxes) hide_init(out);
  for (auto& x : spec.devices) out.add("--dev-bind", x, x);
  out.add("--remount-ro", "/dev");
  if (spec.tmpfs_bytes > 0)
    out.add("--perms", "1777", "--size", std::to_string(spec.tmpfs_bytes), "--tmpfs", "/tmp");
  else
    out.add("--dir", "/tmp");
  add_mounts(out, machine, spec, fds);
  out.add("--remount-ro", "/", "--chdir", spec.directory);
  if (!spec.forks_sandboxes) out.add("--seccomp", std::to_string(fds.seccomp));
  out.add("--info-fd", std::to_string(fds.info), "--");
  out.add(helper_path);
  for (auto& x : to_argv(enter)) out.add(x);
  return out.list;
}

std::string sandbox_remedy(const std::string& complaint) {
  auto first_of = [](const char* path) {
    std::ifstream in{path};
    std::string word;
    in >> word;
    return word;
  };
  if (::geteuid() == 0)
    return "this root has no CAP_SYS_ADMIN (an ordinary container): run as an ordinary user, or "
           "start the container with --security-opt seccomp=unconfined --cap-add SYS_ADMIN";
  if (first_of("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1")
    return "AppArmor refuses user namespaces (Ubuntu 24.04): apt install apparmor-profiles && ln "
           "-s "
           "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
           "systemctl reload apparmor";
  if (first_of("/proc/sys/kernel/unprivileged_userns_clone") == "0")
    return "sysctl -w kernel.unprivileged_userns_clone=1";
  if (first_of("/proc/sys/user/max_user_namespaces") == "0")
    return "sysctl -w user.max_user_namespaces=10000";
  if (complaint.find("ermi") != complaint.npos)
    return "user namespaces are refused here; inside a container start it with --security-opt "
           "seccomp=unconfined --security-opt systempaths=unconfined";
  return "run kernelmill doctor";
}

} // namespace kernelmill
