#pragma once

// TensorBoard's event files. A file is a row of records, and a record is
//   length of the data (8 bytes, little-endian), masked CRC-32C of these 8 bytes (4 bytes),
//   the data, masked CRC-32C of the data (4 bytes)
// The data is a protobuf message `Event`; the first one says "brain.Event:2". Steps grow within a
// file: a reader that meets a smaller one forgets what it has read of the larger ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelmill {

/// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes) noexcept;

/// The same, rotated and shifted, as event files hold it: a CRC over bytes that hold a CRC is weak.
uint32_t masked_crc32c(std::string_view bytes) noexcept;

/// One record of a file.
std::string event_record(std::string_view data);

/// What a file begins with.
std::string first_event(double wall_time);

struct event_values {
  double wall_time = 0; ///< seconds since 1970
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> scalars; ///< by tag
  std::vector<std::pair<std::string, std::vector<double>>> histograms;
};

/// An `Event` with all of these values. Values that are not finite, and histograms of none, are
/// left out.
std::string encode_event(const event_values& x);

/// Reads events of our own making: scalars, and tags of histograms.
struct read_event {
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> scalars;
  std::vector<std::string> histograms;
};

struct event_prefix {
  size_t bytes = 0; ///< up to the first record that is torn, damaged or no event
  std::vector<read_event> events;
  std::vector<size_t> ends; ///< of each event, in bytes
};
event_prefix read_events(std::string_view file);

} // namespace kernelmill
