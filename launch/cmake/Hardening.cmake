# What is handed out is built with all that makes a flaw of ours, or of a library, harder to use, and
# so that two machines get the same bytes from one commit. launch/tools/packaging/check.py looks at the
# result. Builds for development do without: they are faster to make, and name their tree.

set(KERNELMILL_TREE ${CMAKE_SOURCE_DIR}) # where programs look when nothing is installed
if(NOT KERNELMILL_PACKAGE)
  return()
endif()

# A user of a tarball has none of the builder's folders, and another user could create them.
set(KERNELMILL_TREE /nonexistent)
add_compile_options(
  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
  -fcf-protection=full -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack -Wl,--build-id=sha1)
# Position-independent programs, whatever the compiler's default is.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)
# Nothing is padded to the length of the builder's folder, or changed when it is installed.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
