# `cpack -G TGZ` makes the tarball that runs where nothing is installed: the programs, the shared
# libraries that a newer Linux may lack, bubblewrap, and configs/. `cpack -G DEB` leaves the
# libraries to Debian's packages. launch/package.sh calls both.

# The host's own: the C and C++ run-time libraries of a newer system serve older programs, and
# candidates that its compiler built need the newer ones in the same process.
set(host_libraries
  "^(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libstdc[+][+]|libgcc_s)[.]so")

# DT_RPATH, not DT_RUNPATH: it also holds for what the bundled libraries need themselves.
foreach(program kernelmill kernelmill-referee)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/kernelmill")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()

install(TARGETS kernelmill kernelmill-spawner kernelmill-referee kernelmill-candidate
    kernelmill-nvrtc
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
# The contract `torch`: our Python, and the library that it opens.
install(TARGETS kernelmill-program kernelmill-torch LIBRARY DESTINATION lib/kernelmill COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/gpu/torch/kernelmill_torch
  DESTINATION share/kernelmill/python COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)
# What launch/gpu_check.sh needs on a GPU host that has the tarball and nothing else of ours.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tests/exploits/gpu_corpus
    ${CMAKE_SOURCE_DIR}/tests/exploits/corpus ${CMAKE_SOURCE_DIR}/tests/exploits/torch_corpus ${CMAKE_SOURCE_DIR}/tests/exploits/matrix
  DESTINATION share/kernelmill/gpu_check COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)
install(PROGRAMS ${CMAKE_SOURCE_DIR}/launch/gpu_check.sh
  DESTINATION share/kernelmill/gpu_check COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/launch/tools/gpu_check
  DESTINATION share/kernelmill/gpu_check COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/tests/bench/event_timer.cu
    ${CMAKE_SOURCE_DIR}/tests/gpu/profile_kernels.cu ${CMAKE_SOURCE_DIR}/tests/gpu/sanitizer_kernels.cu
  DESTINATION share/kernelmill/gpu_check COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/kernelmill COMPONENT programs)
# AMD's headers by which nvcc takes HIP (MIT), with their licence: GPU hosts do not have Debian's package.
find_path(KERNELMILL_HIP_HEADERS hip/nvidia_detail/nvidia_hip_runtime.h)
if(KERNELMILL_HIP_HEADERS)
  install(DIRECTORY ${KERNELMILL_HIP_HEADERS}/hip
    DESTINATION ${CMAKE_INSTALL_DATADIR}/kernelmill/configs/hip/include COMPONENT programs
    PATTERN "amd_detail" EXCLUDE PATTERN "hcc_detail" EXCLUDE PATTERN "nvcc_detail" EXCLUDE)
  install(FILES /usr/share/doc/libamdhip64-dev/copyright RENAME LICENSE
    DESTINATION ${CMAKE_INSTALL_DATADIR}/kernelmill/configs/hip/include/hip COMPONENT programs OPTIONAL)
endif()
# The Python client: `pip install PREFIX/share/kernelmill/client`.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/launch/learning/client/
  DESTINATION share/kernelmill/client COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)
# What starts a cluster. The .deb puts the units where systemd looks; nothing enables them.
install(PROGRAMS ${CMAKE_SOURCE_DIR}/launch/local_cluster.sh
  DESTINATION share/kernelmill/launch COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/launch/tools/slurm ${CMAKE_SOURCE_DIR}/launch/tools/kubernetes
  DESTINATION share/kernelmill/launch COMPONENT programs)
# The reference trainer.
install(PROGRAMS ${CMAKE_SOURCE_DIR}/launch/teach.sh
  DESTINATION share/kernelmill/launch COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/launch/learning/trainer
  DESTINATION share/kernelmill/launch COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/launch/tools/systemd/kernelmill-head.service
    ${CMAKE_SOURCE_DIR}/launch/tools/systemd/kernelmill-node.service
  DESTINATION lib/systemd/system COMPONENT programs)
# `man kernelmill`, from the table of commands.
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/kernelmill.1
  COMMAND kernelmill __reference man > ${CMAKE_BINARY_DIR}/kernelmill.1
  DEPENDS kernelmill VERBATIM)
add_custom_target(manual ALL DEPENDS ${CMAKE_BINARY_DIR}/kernelmill.1)
install(FILES ${CMAKE_BINARY_DIR}/kernelmill.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
# The README and what it links to.
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/SECURITY.md
    ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kernelmill COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kernelmill COMPONENT programs)

find_program(BWRAP bwrap)
find_program(PATCHELF patchelf)
if(BWRAP AND PATCHELF)
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    file(GET_RUNTIME_DEPENDENCIES
      EXECUTABLES $<TARGET_FILE:kernelmill> $<TARGET_FILE:kernelmill-referee> ${BWRAP}
      RESOLVED_DEPENDENCIES_VAR libraries
      PRE_EXCLUDE_REGEXES \"${host_libraries}\")
    file(INSTALL \${libraries} DESTINATION \"\${root}/lib/kernelmill\" FOLLOW_SYMLINK_CHAIN)
    file(INSTALL ${BWRAP} DESTINATION \"\${root}/libexec/kernelmill\" USE_SOURCE_PERMISSIONS)
    execute_process(COMMAND ${PATCHELF} --force-rpath --set-rpath
      \"\\\$ORIGIN/../../lib/kernelmill\" \"\${root}/libexec/kernelmill/bwrap\"
      COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT libraries)
endif()

set(CPACK_PACKAGE_NAME kernelmill)
set(CPACK_PACKAGE_VENDOR "The Kernelmill authors")
set(CPACK_PACKAGE_CONTACT "The Kernelmill authors <kernelmill@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Runs LLM agents that write GPU kernels and scores each kernel")
set(CPACK_PACKAGE_FILE_NAME "kernelmill-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "bubblewrap, g++")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/launch/cmake/PackageOptions.cmake)
include(CPack)
