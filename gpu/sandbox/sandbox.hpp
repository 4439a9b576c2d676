#pragma once

// The walls around everything a candidate's author wrote: the compiler that reads it and the
// process that runs it. bubblewrap unshares every namespace; on top come an empty environment, a
// private tmpfs, seccomp, resource limits, and a cgroup where one can be had. Layers that this
// machine lacks are named by probe(), shown by `kernelmill doctor` and kept in the run's
// manifest; a run that requires a missing layer does not start.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/process/process.hpp"
#include "messages/error.hpp"

namespace kernelmill {

enum class layer_state : unsigned char { active, weaker, missing };

struct sandbox_layer {
  std::string name; ///< "namespaces", "seccomp", "cgroup_memory", "cgroup_pids", "rlimits",
                    ///< "no_network", "separate_user", "landlock"
  layer_state state = layer_state::missing;
  std::string detail; ///< what was tried and what came back
  std::string remedy; ///< the command that would help; may be empty
  std::string cost;   ///< what is so where the layer is not
};

/// One line: the layers that do not stand, each with what that costs; empty when all stand.
std::string layers_that_fell(const std::vector<sandbox_layer>& layers);

/// The names of those that stand.
std::vector<std::string> layers_that_stood(const std::vector<sandbox_layer>& layers);

/// The target runs as a user of its own: what it is to read must be readable for others. The
/// directories above the source do not matter.
struct bind_mount {
  std::string source;
  std::string target;
  bool writable = false;
};

/// A read-only file inside whose bytes come from a descriptor, from its offset on.
struct file_copy {
  int source = -1;
  std::string target;
};

struct sandbox_spec {
  std::vector<std::string> argv; ///< inside the sandbox
  std::vector<std::string> environment;
  std::vector<file_copy> files;
  std::vector<bind_mount> mounts;   ///< besides /usr (read-only), /proc, /dev, /tmp
  std::vector<std::string> devices; ///< nodes below /dev, besides the harmless ones
  std::string directory = "/tmp";
  std::vector<std::pair<int, int>> descriptors; ///< {ours, theirs}; 0 to 2 default to /dev/null
  std::vector<int> cpus;                        ///< affinity; empty: as keep_to() says
  resource_limits limits;                       ///< 0: default_limits(); no_limit: none
  uint64_t memory_bytes = 0;                    ///< cgroup limit, where there is a cgroup
  uint64_t process_count = 0;                   ///< cgroup limit, where there is a cgroup
  uint64_t tmpfs_bytes = uint64_t{256} << 20;   ///< of /tmp; 0: it is read-only

  /// Compilers exec programs of /usr. Candidates do not: of /usr they see the libraries alone, and
  /// the candidate program calls enter_candidate_seccomp() before it loads what a policy wrote
  /// (until then it can exec, since it was exec'd itself).
  bool may_exec = true;

  /// Sockets of the loopback interface, which is the sandbox's own: tools that look at device code
  /// talk to their library in its process by them.
  bool may_use_loopback = false;

  /// A trusted process that forks others and walls each of them in itself: it keeps what that takes
  /// (on a root's machine four capabilities, else the right to more user namespaces) and gets no
  /// filter of system calls.
  bool forks_sandboxes = false;
};

inline constexpr uint64_t no_limit = ~uint64_t{0};

/// Limits that hold inside every sandbox unless the spec says otherwise: 8 GiB of address space,
/// files of 256 MiB, 256 processes and threads, 256 open files. Core files are never written.
resource_limits default_limits();

/// Returns the path of bubblewrap: the system's, else the one that came with this program; empty
/// when there is none.
std::string find_bubblewrap();

/// A process inside the walls. Ending it ends everything it started (its pid namespace dies).
class sandboxed_child {
public:
  sandboxed_child(sandboxed_child&&) noexcept;
  sandboxed_child& operator=(sandboxed_child&&) noexcept;
  ~sandboxed_child();

  /// Waits until every process inside has ended. A program that a signal ended is told from its
  /// exit code (128 + signal), which is all that bubblewrap passes on.
  expected<exit_status> wait(int deadline_ms);

  /// Kills everything inside; wait() then answers within about a millisecond, or as long as the
  /// kernel takes to free their memory.
  void kill() noexcept;
  bool running() const;
  int pid() const noexcept;            ///< of bubblewrap, outside
  bool out_of_memory() const noexcept; ///< the cgroup, where there is one, killed it

  /// Whether a signal ended bubblewrap itself: nobody inside can send it one.
  bool ended_from_outside() const noexcept;

  /// Whether the kernel killed anybody inside for want of memory, its own or the machine's; nothing
  /// where no cgroup tells.
  std::optional<bool> killed_for_memory() const noexcept;

private:
  friend class sandbox;
  struct state;
  explicit sandboxed_child(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

/// Thread safety: any number of threads may call start().
class sandbox {
public:
  /// Finds bwrap and the cgroup back end (v2, v1 or none).
  explicit sandbox(spawner& processes);
  ~sandbox();

  /// What starts its processes; trusted programs may be started by it without walls.
  spawner& processes() noexcept;

  /// Where what it starts runs from now on, unless a spec says otherwise. Before the first start().
  void keep_to(std::vector<int> cpus);

  /// Tries each layer by using it. Takes about 50 ms.
  std::vector<sandbox_layer> probe();

  /// Returns when the program has begun (about 6 ms). An argv[0] that cannot be executed is an
  /// error here, and so is a machine that refuses the walls ("sandbox_unavailable", with a remedy).
  expected<sandboxed_child> start(const sandbox_spec& spec);

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
