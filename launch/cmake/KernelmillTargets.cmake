# The flags of the project's own code, and the two ways to declare a target with them.

add_library(kernelmill_flags INTERFACE)
target_include_directories(kernelmill_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(kernelmill_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wformat=2
  # g++ 12 reports `"x" + std::string` and std::string{"x"} + y (its bugs 105651, 105329)
  -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(kernelmill_flags INTERFACE -Wno-unknown-warning-option) # those above are g++'s
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Its garbage collector runs each time that the heap has grown by a third; with templates like ours that is a tenth
  # of all the time. Up to 2 GB a compiler this way.
  target_compile_options(kernelmill_flags INTERFACE
    "SHELL:--param ggc-min-expand=300" "SHELL:--param ggc-min-heapsize=2000000")
endif()
if(KERNELMILL_WERROR)
  target_compile_options(kernelmill_flags INTERFACE -Werror)
endif()
if(KERNELMILL_UNITY)
  # Neither is a mistake there: a type of an unnamed namespace that lies in another file than the
  # unit's, and a local name that another source has outside of its functions.
  target_compile_options(kernelmill_flags INTERFACE -Wno-subobject-linkage -Wno-shadow)
  # What fmt::fmt defines; precompiled headers fit only targets with the same definitions.
  target_compile_definitions(kernelmill_flags INTERFACE FMT_SHARED)
endif()
if(KERNELMILL_SANITIZE)
  # CAF itself is not instrumented; null and vptr report its intrusive containers.
  target_compile_options(kernelmill_flags INTERFACE
    -fsanitize=${KERNELMILL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize=null,vptr)
  target_link_options(kernelmill_flags INTERFACE -fsanitize=${KERNELMILL_SANITIZE})
endif()
if(KERNELMILL_FUZZ)
  # What libFuzzer steers by; and whatever is undefined ends the process, so that it is found.
  target_compile_options(kernelmill_flags INTERFACE
    -fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

# The headers that cost most and the templates that they instantiate, compiled once for each level of optimization, for
# unity builds with clang: a seventh of their time. With g++ 12 it gains nothing that can be measured. A library that is
# declared before this is called parses them itself.
function(kernelmill_headers)
  set(levels 0 1 ${KERNELMILL_OPTIMIZE})
  list(REMOVE_DUPLICATES levels)
  foreach(level ${levels})
    set(name kernelmill_headers_O${level})
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/launch/cmake/headers.cpp)
    target_link_libraries(${name} PRIVATE kernelmill_flags kernelmill_messages CAF::core fmt::fmt
      nlohmann_json::nlohmann_json)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O${level}>)
    target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/launch/cmake/headers.hpp)
  endforeach()
endfunction()

function(kernelmill_use_headers name level)
  if(TARGET kernelmill_headers_O${level})
    target_precompile_headers(${name} REUSE_FROM kernelmill_headers_O${level})
  endif()
endfunction()

# kernelmill_library(NAME SOURCES... [HOT sources] [PUBLIC libs] [PRIVATE libs] [ONCE] [APART])
# HOT are those of the sources that time goes into while candidates wait: loops over elements, which g++
# vectorizes only at -O3; they have it in every build, and are compiled one by one. ONCE is for what
# runs once in a command: compiling it takes longer than running it, so it has one level less than the others, which
# have -O${KERNELMILL_OPTIMIZE}.
# Only a release build heeds either.
# With -DKERNELMILL_UNITY=ON up to 24 sources of a library are compiled as one, since most of
# their time goes into the headers of CAF and JSON. Names in the unnamed namespaces of one library
# must differ then; tests/unit/folders/unity_test.py finds those that do not. Small libraries with
# the same name in each file stay APART.
function(kernelmill_library name)
  cmake_parse_arguments(arg "ONCE;APART" "" "SOURCES;HOT;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC kernelmill_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  set(level ${KERNELMILL_OPTIMIZE})
  if(arg_ONCE AND level GREATER 0)
    math(EXPR level "${level} - 1")
  endif()
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O${level}>)
  # Headers that were compiled with another level do not serve them.
  set_property(SOURCE ${arg_HOT} APPEND PROPERTY COMPILE_OPTIONS -O3)
  set_property(SOURCE ${arg_HOT} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  if(KERNELMILL_UNITY AND NOT arg_APART)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
  kernelmill_use_headers(${name} ${level})
endfunction()

# kernelmill_program(NAME SOURCES... [LINK libs])
function(kernelmill_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kernelmill_flags ${arg_LINK})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O${KERNELMILL_OPTIMIZE}>)
endfunction()

# Messages are allocated by one thread and freed by another; glibc's malloc takes locks for that.
# Sanitizers bring their own allocator.
function(kernelmill_link_allocator name)
  if(NOT KERNELMILL_SANITIZE)
    target_link_libraries(${name} PRIVATE -Wl,--push-state,--no-as-needed mimalloc -Wl,--pop-state)
  endif()
endfunction()

# kernelmill_test_program(NAME LABEL [LINK libs] [TIMEOUT seconds] [WHOLE] [ALONE] [SLOW patterns])
# One GoogleTest program of tests/; the folders below give it their sources. One ctest entry a test case, and with WHOLE one
# for all: where setting up takes longer than the tests. With ALONE no other test runs beside it: what is timed wants the
# machine for itself. Test cases that match a pattern of SLOW (`Suite.Case`, with *) have the label `slow` instead: they run
# with `launch/test.sh --all` alone.
function(kernelmill_test_program name label)
  cmake_parse_arguments(arg "WHOLE;ALONE;NIGHTLY" "TIMEOUT" "LINK;SLOW" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  add_executable(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE KERNELMILL_TREE="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE kernelmill_flags ${arg_LINK} GTest::gmock GTest::gtest_main)
  # Optimizing assertions takes half of the build and makes no test faster; what they test is
  # optimized as the preset says.
  target_compile_options(${name} PRIVATE -O0)
  if(KERNELMILL_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT})
  if(arg_ALONE)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  set(slow_label slow)
  if(arg_NIGHTLY)
    set(slow_label nightly)
  endif()
  if(arg_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set(labels ${label})
    if(arg_SLOW)
      list(APPEND labels ${slow_label})
    endif()
    set_tests_properties(${name} PROPERTIES ${properties} LABELS "${labels}")
    return()
  endif()
  if(arg_SLOW)
    list(JOIN arg_SLOW ":" slow)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 300 TEST_FILTER "${slow}" TEST_LIST ${name}_SLOW
      PROPERTIES ${properties} LABELS ${slow_label})
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 300 TEST_FILTER "-${slow}" PROPERTIES ${properties} LABELS "${label}")
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 300 PROPERTIES ${properties} LABELS "${label}")
  endif()
endfunction()

# kernelmill_smoke(PROGRAM LABEL FILTER [VARIABLE=value])
# What the default suite runs of a program whose cases are slow: those of a filter, or all of them with fewer rounds.
function(kernelmill_smoke program label filter)
  add_test(NAME smoke.${program} COMMAND ${program} --gtest_filter=${filter})
  set_tests_properties(smoke.${program} PROPERTIES LABELS ${label} TIMEOUT 900 ENVIRONMENT "${ARGN}")
endfunction()

# kernelmill_test(PROGRAM SOURCES... [LINK libs] [APART])
# Gives a test program the sources of a folder. With KERNELMILL_UNITY sixteen of a program are compiled as one, unless
# APART: each test file has a namespace of its own, named as the file is, so that helpers of one name are no trouble.
function(kernelmill_test program)
  cmake_parse_arguments(arg "APART" "" "SOURCES;LINK" ${ARGN})
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  target_sources(${program} PRIVATE ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LINK})
  if(arg_APART)
    set_source_files_properties(${arg_SOURCES} TARGET_DIRECTORY ${program} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
