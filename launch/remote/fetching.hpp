#pragma once

// What a session left comes here: into folders beside the places where it belongs, checked by
// hash, and there under its name only when all of it is.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launch/remote/file_list.hpp"
#include "launch/remote/near_record.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

/// A file that is to come, and how much of it is here.
struct wanted_file {
  file_entry entry;
  std::string staged;
  uint64_t have = 0;
};

class fetching {
public:
  static constexpr size_t batch = 256; ///< files that are asked for at once

  fetching(std::vector<fetched_place> places, std::string session)
      : places_(std::move(places)), session_(std::move(session)) {}

  /// The files that are to be asked for. Errors: "remote_protocol" for one that belongs to no
  /// place, "disk_full".
  expected<std::vector<wanted_file>> plan(std::vector<file_entry> files);

  /// Appends to a file; the last piece is checked against size and hash. Errors: "remote_protocol",
  /// "disk_full".
  expected<void> add(wanted_file& x, std::string_view piece, bool last);

  /// Removes what came and has no place yet.
  void discard();

  /// Moves everything to its place. Errors: "directory_not_empty".
  expected<void> commit();

  size_t files() const noexcept { return files_; }
  uint64_t bytes() const noexcept { return bytes_; }

private:
  std::string staging_of(const fetched_place& x) const;

  std::vector<fetched_place> places_;
  std::string session_;
  size_t files_ = 0;
  uint64_t bytes_ = 0;
};

} // namespace kernelmill::remote
