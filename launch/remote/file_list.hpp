#pragma once

// The files of a session: named by paths below one folder, known by their content's hash. Names
// come from the other end as well, so each is checked before anything is made of it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

struct file_entry {
  std::string path; ///< "inputs/kernel.cu": safe_path() holds
  uint64_t size = 0;
  std::string sha256; ///< 64 hex digits
  bool executable = false;
};

inline constexpr size_t most_files = 200'000;

/// Whether a path stays below the folder that it starts in, and can be shown: no "..", no empty
/// part, no control bytes, at most 1,024 bytes.
bool safe_path(std::string_view path);

/// Whether `path` is `root` or below it.
bool lies_in(std::string_view path, std::string_view root);

/// 64 lower-case hex digits.
bool is_sha256(std::string_view text);

nlohmann::json to_json(const std::vector<file_entry>& files);

/// Reads a list that the other end sent. Errors: "remote_protocol" for what is no list, a path that
/// is not safe or comes twice, a file that is another one's folder.
expected<std::vector<file_entry>> read_files(const std::string& text);

/// SHA-256 and size of a file. Errors: "missing_file".
expected<file_entry> describe_file(const std::string& file, std::string path);

/// The regular files of a folder, sorted, each as `prefix`/NAME. Sockets, pipes and links that lead
/// out are left out and counted in `left_out`. Errors: "missing_file", too many files.
struct folder_files {
  std::vector<file_entry> files;
  std::vector<std::string> sources; ///< where each lies here
  size_t left_out = 0;
};
expected<folder_files> list_folder(const std::string& folder, const std::string& prefix);

} // namespace kernelmill::remote
