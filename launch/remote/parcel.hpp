#pragma once

// This Kernelmill as files that another host can run: its programs, the libraries that such a host
// may lack, configs/ and the Python package, in the layout of an installation.

#include <functional>
#include <string>
#include <vector>

#include "launch/remote/file_list.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

struct parcel {
  std::vector<file_entry> files;    ///< "bin/kernelmill"
  std::vector<std::string> sources; ///< where each lies here
  std::string sha256;               ///< of all names and contents
  uint64_t bytes = 0;
};

/// Lists and hashes this program's own files. Errors: "missing_file".
expected<parcel> own_parcel();

/// Whether a shared library is the host's own: the C and C++ run-time libraries of a newer system
/// serve older programs.
bool is_of_the_host(const std::string& library);

/// The run path that a program of a build tree keeps free, filled as an installation fills it.
std::string with_run_path(std::string program);

/// The parcel as a tar archive, piece by piece to `write`.
expected<void> write_tar(const parcel& x,
                         const std::function<expected<void>(std::string_view)>& write);

/// One header of such an archive: 512 bytes. `path` has at most 255 bytes.
std::string tar_header(const std::string& path, uint64_t size, bool executable);

} // namespace kernelmill::remote
