#include "storage/artifacts.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <unistd.h>
#include <zstd.h>

#include "messages/base/digest.hpp"
#include "messages/message.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// The latest texts, the oldest of them first. Their hashes were checked when they came.
class recent_texts {
public:
  void limit(size_t bytes) {
    std::scoped_lock lock{mutex_};
    most_ = bytes;
  }

  std::shared_ptr<const std::string> find(const std::string& sha256) {
    std::scoped_lock lock{mutex_};
    auto i = texts_.find(sha256);
    return i == texts_.end() ? nullptr : i->second;
  }

  // One that takes a good part of the room would push out what siblings still need.
  void add(const std::string& sha256, std::string_view text) {
    std::scoped_lock lock{mutex_};
    if (text.size() > most_ / 8 || texts_.contains(sha256)) return;
    texts_.emplace(sha256, std::make_shared<const std::string>(text));
    order_.push_back(sha256);
    held_ += text.size();
    while (held_ > most_) {
      auto oldest = texts_.find(order_.front());
      held_ -= oldest->second->size();
      texts_.erase(oldest);
      order_.pop_front();
    }
  }

private:
  std::mutex mutex_;
  size_t most_ = 0;
  size_t held_ = 0;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> texts_;
  std::deque<std::string> order_;
};

} // namespace

// Hashes that are known to be on disk, so that a prompt shared by thousands of episodes costs one
// write and one sync. Forgotten all at once when there are many: 100,000 take about 13 MB.
struct artifact_store::knowledge {
  static constexpr size_t most = 100'000;

  bool holds(const std::string& sha256) {
    std::scoped_lock lock{mutex};
    return hashes.contains(sha256);
  }

  void add(std::string sha256) {
    std::scoped_lock lock{mutex};
    if (hashes.size() >= most) hashes.clear();
    hashes.insert(std::move(sha256));
  }

  std::mutex mutex;
  std::unordered_set<std::string> hashes;
  recent_texts recent;
};

namespace {

constexpr int compression_level = 3;

constexpr char name_rule[] = "its name must be 64 lower-case hex digits";

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

expected<std::string> compress(std::string_view bytes) {
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  auto size =
      ZSTD_compress(result.data(), result.size(), bytes.data(), bytes.size(), compression_level);
  if (ZSTD_isError(size))
    return infrastructure_error("io_error", std::string{"failed to compress an artifact: "} +
                                                ZSTD_getErrorName(size));
  result.resize(size);
  return result;
}

tl::unexpected<error> damaged(const std::string& path, const std::string& cause) {
  return infrastructure_error("store_damaged", "failed to read artifact " + path + ": " + cause,
                              "restore the file from a copy, or take its run out of exports");
}

// The frame's own word for its size is checked before memory is taken for it.
expected<std::string> decompress(const std::string& packed, const std::string& path) {
  auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return damaged(path, "it is not a zstd frame of ours");
  if (size > max_message_bytes) return damaged(path, "it announces more than 256 MiB");
  std::string result(size, '\0');
  auto count = ZSTD_decompress(result.data(), result.size(), packed.data(), packed.size());
  if (ZSTD_isError(count)) return damaged(path, ZSTD_getErrorName(count));
  if (count != size) return damaged(path, "it is shorter than it announces");
  return result;
}

} // namespace

artifact_store::artifact_store(std::string directory)
    : directory_(std::move(directory)), known_(std::make_shared<knowledge>()) {
  // nop
}

std::string artifact_store::path_of(std::string_view sha256) const {
  std::string result = directory_;
  result.append("/").append(sha256.substr(0, 2)).append("/");
  return result.append(sha256.substr(2)).append(".zst");
}

// Returns whether the file is new; either way its name is not durable before its folder is.
expected<bool> artifact_store::write(const artifact& x, const std::string& path) const {
  if (::access(path.c_str(), F_OK) == 0) return false;
  if (sha256_hex(x.bytes) != x.sha256)
    return infrastructure_error("invalid_artifact", "failed to write artifact " +
                                                        std::string{x.sha256} +
                                                        ": its bytes have another SHA-256");
  auto packed = compress(x.bytes);
  KM_TRY(packed);
  KM_TRY(make_directories(fs::path{path}.parent_path()));
  auto file = atomic_file::create(path);
  KM_TRY(file);
  KM_TRY(file->append(*packed));
  KM_TRY(file->commit(false));
  known_->recent.add(std::string{x.sha256}, x.bytes);
  return true;
}

expected<void> artifact_store::put(const std::string& sha256, std::string_view bytes) {
  artifact one{sha256, bytes};
  return put_all({&one, 1});
}

expected<void> artifact_store::put_all(std::span<const artifact> batch) {
  std::set<std::string> folders;
  std::vector<std::string> written;
  for (const auto& x : batch) {
    std::string sha256{x.sha256};
    if (known_->holds(sha256)) continue;
    if (!is_sha256(sha256))
      return infrastructure_error("invalid_artifact",
                                  "failed to write artifact \"" + sha256 + "\": " + name_rule);
    auto path = path_of(x.sha256);
    auto fresh = write(x, path);
    KM_TRY(fresh);
    // Also when another writer has just renamed it: its sync may not have come yet.
    folders.insert(fs::path{path}.parent_path().string());
    written.push_back(std::move(sha256));
  }
  for (const auto& folder : folders)
    if (auto ok = sync_directory(folder); !ok) return ok;
  for (auto& sha256 : written) known_->add(std::move(sha256));
  return {};
}

expected<std::string> artifact_store::get(const std::string& sha256) const {
  if (!is_sha256(sha256))
    return configuration_error("not_found",
                               "failed to read artifact \"" + sha256 + "\": " + name_rule);
  if (auto text = known_->recent.find(sha256)) return *text;
  auto path = path_of(sha256);
  auto packed = read_file(path);
  if (!packed) return packed;
  auto bytes = decompress(*packed, path);
  if (bytes && sha256_hex(*bytes) != sha256)
    return damaged(path, "its content has another SHA-256");
  if (bytes) known_->recent.add(sha256, *bytes);
  return bytes;
}

expected<std::string_view> part_of(std::string_view completion, wire::TextSpan::Reader span) {
  size_t begin = span.getBegin(), size = span.getSize();
  if (begin <= completion.size() && size <= completion.size() - begin)
    return completion.substr(begin, size);
  return infrastructure_error("store_damaged", "failed to read a candidate: its completion has " +
                                                   std::to_string(completion.size()) +
                                                   " bytes and the candidate ends at byte " +
                                                   std::to_string(begin + size));
}

expected<std::string> artifact_store::candidate(wire::TurnRecord::Reader turn) const {
  auto content = turn.getCandidate();
  if (!content.isOfCompletion()) return text(content);
  auto completion = text(turn.getCompletion().getText());
  KM_TRY(completion);
  auto part = part_of(*completion, content.getOfCompletion());
  KM_TRY(part);
  return std::string{*part};
}

expected<std::string> artifact_store::text(wire::Content::Reader content) const {
  if (content.isOfCompletion())
    return infrastructure_error("internal", "failed to read a text: a candidate's place in its "
                                            "completion is no text by itself");
  if (content.isArtifact()) return get(content.getArtifact().getSha256().cStr());
  auto text = content.getInline();
  return std::string{text.begin(), text.size()};
}

void artifact_store::keep_recent(size_t bytes) {
  known_->recent.limit(bytes);
}

void artifact_store::remove_leftovers() const {
  std::error_code status;
  // NAME.zst.PID.N.tmp: another process may be writing its own at this moment.
  for (fs::recursive_directory_iterator i{directory_, status}, end; !status && i != end;
       i.increment(status)) {
    if (i->path().extension() != ".tmp") continue;
    auto pid_text = i->path().stem().stem().extension().string();
    int pid = 0;
    if (pid_text.size() > 1)
      std::from_chars(pid_text.data() + 1, pid_text.data() + pid_text.size(), pid);
    bool alive = pid > 0 && pid != ::getpid() && (::kill(pid, 0) == 0 || errno == EPERM);
    std::error_code ignored;
    if (!alive && pid != ::getpid()) fs::remove(i->path(), ignored);
  }
}

} // namespace kernelmill
