#include "storage/disk.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace kernelmill {

bool is_remote_filesystem(unsigned long magic) noexcept {
  constexpr unsigned long known[] = {
      0x6969,     // NFS
      0x517b,     // SMB
      0xff534d42, // CIFS
      0xfe534d42, // SMB2
      0x0bd00bd0, // Lustre
      0x65735546, // FUSE: sshfs, s3fs, GlusterFS
      0x00c36400, // Ceph
      0x47504653, // GPFS
      0x19830326, // BeeGFS
      0x5346414f, // AFS
      0x6b414653, // kAFS
      0x01021997, // 9P
      0xaad7aaea, // PanFS
      0x7461636f, // OCFS2
      0x01161970, // GFS2
      0x73757245, // Coda
  };
  return std::find(std::begin(known), std::end(known), magic & 0xffffffff) != std::end(known);
}

int reserve_file(const std::string& path, int64_t bytes) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  struct stat facts {};
  int code = ::fstat(fd, &facts) != 0 ? errno : 0;
  if (code == 0 && facts.st_size < bytes) code = ::posix_fallocate(fd, 0, bytes);
  ::close(fd);
  return code;
}

int cause_of_short_write(const std::string& directory, const std::string& file) {
  constexpr off_t room = 16 << 20; // more than a batch writes
  rlimit limit{};
  struct stat facts {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      ::stat((directory + "/" + file).c_str(), &facts) == 0 &&
      static_cast<rlim_t>(facts.st_size + room) > limit.rlim_cur)
    return EFBIG;
  struct statvfs space {};
  if (::statvfs(directory.c_str(), &space) == 0 &&
      static_cast<off_t>(space.f_bavail * space.f_frsize) < room)
    return ENOSPC;
  // Quotas show only in trying.
  int fd = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return EIO;
  int code = ::fallocate(fd, 0, 0, room) == 0 ? 0 : errno;
  ::close(fd);
  return code == ENOSPC || code == EDQUOT ? code : EIO;
}

} // namespace kernelmill
