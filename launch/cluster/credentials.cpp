#include "launch/cluster/credentials.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "launch/cluster/certificates.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

using store_ptr = std::unique_ptr<X509_STORE, certificates::freed_by<X509_STORE_free>>;
using store_context_ptr =
    std::unique_ptr<X509_STORE_CTX, certificates::freed_by<X509_STORE_CTX_free>>;

constexpr const char* copy_again =
    "copy ca.pem, node.pem and node.key together from the machine that ran "
    "`kernelmill cluster init`";
constexpr const char* make_new =
    "make new ones with `kernelmill cluster init --dir NEW`, and copy them to every machine";

cluster_credentials files_of(const std::string& directory) {
  return {directory, directory + "/ca.pem", directory + "/node.pem", directory + "/node.key"};
}

/// Absolute and without a last slash, so that names beside it can be made of it.
std::string tidy(const std::string& directory) {
  std::error_code code;
  auto path = fs::absolute(directory, code).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

// -- make ---------------------------------------------------------------------------------------

tl::unexpected<error> exists_already(const std::string& directory) {
  return configuration_error("credentials_exist",
                             "failed to make credentials in " + directory +
                                 ": it exists and is not empty",
                             "use what is there, or name another directory with --dir");
}

tl::unexpected<error> not_made(const std::string& path, int reason) {
  auto text = "failed to make " + path + ": " + std::strerror(reason);
  if (reason == EACCES || reason == EPERM || reason == EROFS)
    return configuration_error("read_only", std::move(text),
                               "name a directory that you may write to with --dir");
  return infrastructure_error("io_error", std::move(text));
}

tl::unexpected<error> no_directory() {
  return configuration_error("credentials_missing",
                             "failed to find credentials: no directory is named, and neither "
                             "HOME nor XDG_STATE_HOME is set",
                             "name it with --credentials or KERNELMILL_CREDENTIALS");
}

/// A directory beside the one that is wanted, gone again unless it took that one's place.
class draft {
public:
  explicit draft(const std::string& target) : path_(target + ".XXXXXX") {
    made_ = ::mkdtemp(path_.data()) != nullptr; // of mode 0700
  }
  ~draft() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  draft(const draft&) = delete;
  draft& operator=(const draft&) = delete;

  bool made() const { return made_; }
  const std::string& path() const { return path_; }

  /// rename(2) takes the place of nothing and of an empty directory alone: of two processes
  /// that make credentials at once the second is refused.
  bool publish(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    made_ = false;
    return true;
  }

private:
  std::string path_;
  bool made_ = false;
};

/// Makes what was created or renamed in a directory outlast a power failure.
void sync_directory(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

expected<void> fill(const std::string& directory) {
  auto authority = certificates::make_authority();
  KM_TRY(authority);
  auto node = certificates::make_node(*authority);
  KM_TRY(node);
  auto files = files_of(directory);
  return certificates::write(directory + "/ca.key", authority->key.get())
      .and_then([&] { return certificates::write(files.ca, authority->certificate.get()); })
      .and_then([&] { return certificates::write(files.certificate, node->certificate.get()); })
      .and_then([&] { return certificates::write(files.key, node->key.get()); });
}

// -- find ---------------------------------------------------------------------------------------

expected<void> check_file(const std::string& path, bool secret) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return configuration_error("credentials_missing",
                                 "failed to find " + path + ": there is no such file",
                                 "make credentials once with `kernelmill cluster init`, then copy "
                                 "ca.pem, node.pem and node.key to every machine; --credentials "
                                 "or KERNELMILL_CREDENTIALS names their directory");
    return configuration_error("credentials_unreadable",
                               "failed to look at " + path + ": " + std::strerror(errno),
                               "let the user that runs Kernelmill own the directory");
  }
  if (!S_ISREG(about.st_mode))
    return configuration_error("credentials_damaged",
                               "failed to read " + path + ": it is no regular file", copy_again);
  if (secret && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return configuration_error(
        "credentials_exposed",
        "failed to trust " + path +
            ": group or others can read it, and the key allows its holder to join",
        "chmod 600 " + path + "; if a stranger may have read it, " + make_new);
  return {};
}

tl::unexpected<error> refused(int reason, const cluster_credentials& files,
                              X509_STORE_CTX* context) {
  auto* at = X509_STORE_CTX_get_current_cert(context);
  bool of_authority = X509_STORE_CTX_get_error_depth(context) > 0;
  const auto& file = of_authority ? files.ca : files.certificate;
  if (at && reason == X509_V_ERR_CERT_HAS_EXPIRED)
    return configuration_error("credentials_expired",
                               "failed to trust " + file + ": it expired on " +
                                   certificates::day(X509_get0_notAfter(at)),
                               make_new);
  if (at && reason == X509_V_ERR_CERT_NOT_YET_VALID)
    return configuration_error("credentials_expired",
                               "failed to trust " + file + ": it is valid from " +
                                   certificates::day(X509_get0_notBefore(at)) + " on",
                               "set this machine's clock right");
  return configuration_error("credentials_untrusted",
                             "failed to trust " + files.certificate + " by " + files.ca + ": " +
                                 X509_verify_cert_error_string(reason),
                             copy_again);
}

/// One purpose at a time: every machine dials and answers, so the certificate must serve both.
expected<void> verify(const cluster_credentials& files, X509* authority, X509* node, int purpose) {
  store_ptr store{X509_STORE_new()};
  store_context_ptr context{X509_STORE_CTX_new()};
  if (!store || !context || X509_STORE_add_cert(store.get(), authority) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), node, nullptr) != 1 ||
      X509_STORE_CTX_set_purpose(context.get(), purpose) != 1)
    return infrastructure_error("credentials_failed", "failed to verify " + files.certificate +
                                                          ": " + certificates::last_fault());
  if (X509_verify_cert(context.get()) != 1)
    return refused(X509_STORE_CTX_get_error(context.get()), files, context.get());
  return {};
}

expected<void> check_together(const cluster_credentials& files) {
  auto authority = certificates::read_certificate(files.ca);
  KM_TRY(authority);
  auto node = certificates::read_certificate(files.certificate);
  KM_TRY(node);
  auto key = certificates::read_key(files.key);
  KM_TRY(key);
  if (X509_check_private_key(node->get(), key->get()) != 1)
    return configuration_error(
        "credentials_mismatch",
        "failed to use " + files.key + ": it is not the key of " + files.certificate, copy_again);
  return verify(files, authority->get(), node->get(), X509_PURPOSE_SSL_SERVER).and_then([&] {
    return verify(files, authority->get(), node->get(), X509_PURPOSE_SSL_CLIENT);
  });
}

} // namespace

std::string default_credentials_directory() {
  if (const char* own = std::getenv("KERNELMILL_CREDENTIALS"); own && *own) return own;
  // XDG's rule: a path that is not absolute is to be ignored.
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/')
    return std::string{state} + "/kernelmill/cluster";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string{home} + "/.local/state/kernelmill/cluster";
  return {};
}

expected<cluster_credentials> make_credentials(const std::string& directory) {
  if (directory.empty()) return no_directory();
  auto target = tidy(directory);
  std::error_code code;
  if (fs::symlink_status(target, code).type() != fs::file_type::not_found &&
      !(fs::is_directory(target, code) && fs::is_empty(target, code)))
    return exists_already(target);
  auto parent = fs::path{target}.parent_path().string();
  fs::create_directories(parent, code);
  if (code) return not_made(parent, code.value());
  draft made{target};
  if (!made.made()) return not_made(target, errno);
  KM_TRY(fill(made.path()));
  sync_directory(made.path());
  if (!made.publish(target)) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return exists_already(target);
    return not_made(target, errno);
  }
  sync_directory(parent);
  return files_of(target);
}

expected<cluster_credentials> find_credentials(const std::string& directory) {
  if (directory.empty()) return no_directory();
  auto files = files_of(tidy(directory));
  return check_file(files.ca, false)
      .and_then([&] { return check_file(files.certificate, false); })
      .and_then([&] { return check_file(files.key, true); })
      .and_then([&] { return check_together(files); })
      .map([&] { return files; });
}

} // namespace kernelmill
