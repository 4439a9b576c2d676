# What `kernelmill version` says, known when the build is configured. LMDB's and FAISS's headers
# stay out of launch/, so their versions are read as text.
function(header_version header prefix result)
  set(parts "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#define[ \t]+${prefix}_${part}[ \t]")
    list(GET line 0 line)
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND parts ${number})
  endforeach()
  list(JOIN parts "." version)
  set(${result} ${version} PARENT_SCOPE)
endfunction()
header_version(${LMDB_INCLUDE_DIR}/lmdb.h MDB_VERSION lmdb_version)
header_version(${FAISS_INCLUDE_DIR}/faiss/Index.h FAISS_VERSION faiss_version)
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE git_revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT git_revision)
  set(git_revision "unknown")
endif()
set(version_definitions
  "KERNELMILL_VERSION=\"${PROJECT_VERSION}\";KERNELMILL_GIT=\"${git_revision}\";KERNELMILL_LMDB=\"${lmdb_version}\";KERNELMILL_FAISS=\"${faiss_version}\";KERNELMILL_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"")
