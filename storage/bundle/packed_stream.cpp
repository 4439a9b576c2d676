#include "storage/bundle/packed_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <zstd.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill::bundles {

namespace {

constexpr int level = 9;
constexpr int largest_window_log = 23; // what that level uses at most

constexpr size_t trailer_bytes = 40;

struct free_packing {
  void operator()(ZSTD_CCtx* x) const { ZSTD_freeCCtx(x); }
  void operator()(ZSTD_DCtx* x) const { ZSTD_freeDCtx(x); }
  void operator()(EVP_MD_CTX* x) const { EVP_MD_CTX_free(x); }
};

/// SHA-256 of the compressed bytes as they pass.
class running_digest {
public:
  running_digest() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(const char* bytes, size_t size) { EVP_DigestUpdate(context_.get(), bytes, size); }

  /// The frame that decoders skip: its magic, its size, the digest.
  std::string trailer() {
    std::string result{"\x50\x2a\x4d\x18\x20\0\0\0", 8};
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    return result.append(reinterpret_cast<const char*>(digest), size);
  }

private:
  std::unique_ptr<EVP_MD_CTX, free_packing> context_{EVP_MD_CTX_new()};
};

} // namespace

// -- packing ------------------------------------------------------------------------------------

struct packer::state {
  atomic_file& file;
  std::unique_ptr<ZSTD_CCtx, free_packing> context{ZSTD_createCCtx()};
  std::vector<char> out = std::vector<char>(ZSTD_CStreamOutSize());
  running_digest digest;

  explicit state(atomic_file& to) : file(to) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, largest_window_log);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  }

  expected<void> put(std::string_view bytes, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (bool done = false; !done;) {
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      auto left = ZSTD_compressStream2(context.get(), &to, &in, how);
      if (ZSTD_isError(left))
        return infrastructure_error("io_error", std::string{"failed to compress a bundle: "} +
                                                    ZSTD_getErrorName(left));
      digest.add(out.data(), to.pos);
      KM_TRY(file.append({out.data(), to.pos}));
      done = how == ZSTD_e_end ? left == 0 : in.pos == in.size;
    }
    return {};
  }
};

packer::packer(atomic_file& to) : state_(std::make_unique<state>(to)) {
  // nop
}

packer::~packer() = default;

expected<void> packer::append(std::string_view bytes) {
  return state_->put(bytes, ZSTD_e_continue);
}

expected<void> packer::finish() {
  KM_TRY(state_->put({}, ZSTD_e_end));
  return state_->file.append(state_->digest.trailer());
}

// -- unpacking ----------------------------------------------------------------------------------

struct unpacker::state {
  descriptor file;
  std::string path;
  std::unique_ptr<ZSTD_DCtx, free_packing> context{ZSTD_createDCtx()};
  std::vector<char> packed = std::vector<char>(ZSTD_DStreamInSize());
  ZSTD_inBuffer in{nullptr, 0, 0};
  uint64_t before = 0; ///< bytes of the file ahead of `in`
  uint64_t frame = 0;  ///< bytes of the file ahead of its trailer
  running_digest digest;
  bool frame_done = false, file_done = false;

  tl::unexpected<error> bad(const std::string& why) const {
    return configuration_error("bad_bundle",
                               "failed to read " + path + ": " + why + " (at byte " +
                                   std::to_string(before + in.pos) + " of the file)",
                               "ask for the bundle again; this one was changed or is none");
  }

  expected<void> refill() {
    if (in.pos < in.size || file_done) return {};
    before += in.size;
    auto n = read_retrying(file.get(), packed.data(), packed.size());
    if (n < 0) return tl::unexpected<error>{file_error(errno, "read", path)};
    file_done = n == 0;
    in = {packed.data(), static_cast<size_t>(n), 0};
    if (before < frame) digest.add(packed.data(), std::min<uint64_t>(in.size, frame - before));
    return {};
  }

  /// Takes what is ready of the frame into `to`; nothing only at its end.
  expected<void> step(ZSTD_outBuffer& to) {
    KM_TRY(refill());
    bool starved = in.pos == in.size;
    auto had = to.pos;
    auto left = ZSTD_decompressStream(context.get(), &to, &in);
    if (ZSTD_isError(left))
      return bad(std::string{"its compressed stream is damaged: "} + ZSTD_getErrorName(left));
    frame_done = left == 0;
    if (starved && to.pos == had && !frame_done) return bad("its compressed stream is cut off");
    return {};
  }
};

unpacker::unpacker(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

unpacker::unpacker(unpacker&&) noexcept = default;
unpacker::~unpacker() = default;

expected<unpacker> unpacker::open(const std::string& path) {
  auto x = std::make_unique<state>();
  x->path = path;
  x->file = descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!x->file) return tl::unexpected<error>{file_error(errno, "open", path)};
  struct stat about {};
  if (::fstat(x->file.get(), &about) != 0)
    return tl::unexpected<error>{file_error(errno, "read", path)};
  auto size = static_cast<uint64_t>(std::max<off_t>(about.st_size, 0));
  x->frame = size - std::min<uint64_t>(size, trailer_bytes);
  ZSTD_DCtx_setParameter(x->context.get(), ZSTD_d_windowLogMax, largest_window_log);
  return unpacker{std::move(x)};
}

expected<void> unpacker::read(std::string& to, size_t most) {
  auto& x = *state_;
  to.resize(most);
  ZSTD_outBuffer out{to.data(), most, 0};
  while (out.pos < most && !x.frame_done) KM_TRY(x.step(out));
  to.resize(out.pos);
  return {};
}

expected<void> unpacker::check_end() {
  auto& x = *state_;
  char more = 0;
  ZSTD_outBuffer out{&more, 1, 0};
  while (out.pos == 0 && !x.frame_done) KM_TRY(x.step(out));
  if (out.pos > 0) return x.bad("there are bytes behind its last file");
  if (x.before + x.in.pos < x.frame) return x.bad("there are bytes behind its compressed stream");
  std::string trailer;
  KM_TRY(x.refill());
  while (x.in.pos < x.in.size && trailer.size() <= trailer_bytes) {
    trailer += static_cast<const char*>(x.in.src)[x.in.pos++];
    KM_TRY(x.refill());
  }
  if (trailer != x.digest.trailer())
    return x.bad("its compressed stream was changed: its SHA-256 is not the one at its end");
  return {};
}

} // namespace kernelmill::bundles
