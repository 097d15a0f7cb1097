# What every room of the tree builds with: flags, and the functions that add
# sources, tools and tests.

add_library(pd_flags INTERFACE)
target_compile_features(pd_flags INTERFACE cxx_std_17)
target_include_directories(pd_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
# The floor is AVX2; wider vectors are chosen at run time (Highway, oneDNN). The
# level of optimisation of a Release build is a target's property PD_OPTIMISE, 2
# by default: an option -O of the target itself would stand before this one.
target_compile_options(pd_flags INTERFACE
  -march=x86-64-v3 -Wall -Wextra -Werror=unused-result -Wno-missing-field-initializers
  $<$<CONFIG:Release>:-O$<IF:$<BOOL:$<TARGET_PROPERTY:PD_OPTIMISE>>,$<TARGET_PROPERTY:PD_OPTIMISE>,2>>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC collects garbage from 128 MB on, up to a tenth of its time; where each of
  # ninja's compilers may have 2 GB, only from 1 GB on.
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR share "${memory} / (${cores} + 2)")
  if(share GREATER_EQUAL 2048)
    target_compile_options(pd_flags INTERFACE --param=ggc-min-heapsize=1048576)
  endif()
endif()
if(PD_SANITIZE)
  # Pointers' uses are checked where bytes of files and memory are handled;
  # everywhere would cost 40 % of the time to compile. Arithmetic is checked in
  # all of the tree.
  string(REPLACE "undefined"
    "signed-integer-overflow,shift,integer-divide-by-zero,bounds,enum,bool,return"
    PD_SANITIZE_ALL "${PD_SANITIZE}")
  target_compile_options(pd_flags INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PD_UNSANITIZED>>>:-fsanitize=${PD_SANITIZE_ALL}>
    -fno-omit-frame-pointer -g1)
  target_link_options(pd_flags INTERFACE -fsanitize=${PD_SANITIZE})
  # GCC and Clang name their own macros differently.
  target_compile_definitions(pd_flags INTERFACE PD_WITH_SANITIZER)
endif()

find_program(PD_CCACHE ccache)
if(PD_CCACHE)
  # Paths below the source folder count relative to it, so that clones and
  # build folders at any place share what the cache holds; headers that protoc
  # has just written count too.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${PD_CCACHE})
  # ccache reads from preprocessed text which precompiled header it came from.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(pd_flags INTERFACE -fpch-preprocess)
  endif()
endif()
find_program(PD_MOLD mold)
if(PD_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The headers of the standard library, of Abseil and of GoogleTest that most
# sources include take longer to parse than the sources themselves; they are
# compiled once for each level of optimisation. No header of our own is among
# them, so that an edit never compiles everything anew.
set(PD_STD_HEADERS <algorithm> <array> <cmath> <complex> <cstdint> <cstring>
  <filesystem> <functional> <limits> <map> <memory> <numeric> <optional> <set>
  <string> <type_traits> <unordered_map> <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/status/status.h>
  <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/strings/string_view.h>)

# Clang takes precompiled headers only where -fopenmp is given alike.
function(pd_openmp_for_clang target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# pd_precompiled(NAME [OPTIMISE o] [HEADERS h...] [OPTIONS o...] [LIBRARIES l...]):
# an object library that holds those headers and HEADERS, compiled with OPTIONS and
# in a Release build at -Oo.
function(pd_precompiled name)
  cmake_parse_arguments(its "" "OPTIMISE" "HEADERS;OPTIONS;LIBRARIES" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Its target compiles headers.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE pd_flags absl::flat_hash_map
    absl::status absl::statusor absl::strings absl::str_format ${its_LIBRARIES})
  target_compile_options(${name} PRIVATE ${its_OPTIONS})
  pd_openmp_for_clang(${name})
  target_precompile_headers(${name} PRIVATE ${PD_STD_HEADERS} ${its_HEADERS})
  set_target_properties(${name} PROPERTIES PD_OPTIONS "${its_OPTIONS}"
    PD_OPTIMISE "${its_OPTIMISE}")
endfunction()

# pd_use_precompiled(TARGET NAME): TARGET takes the headers of pd_precompiled(NAME)
# and is compiled with the same options, without which they would be no use.
function(pd_use_precompiled target name)
  get_target_property(options ${name} PD_OPTIONS)
  get_target_property(optimise ${name} PD_OPTIMISE)
  if(optimise)
    set_target_properties(${target} PROPERTIES PD_OPTIMISE ${optimise})
  endif()
  target_compile_options(${target} PRIVATE ${options})
  pd_openmp_for_clang(${target})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# Most of the time to compile a source that computes little goes into the headers
# of other rooms and their templates. Eight sources of a room are compiled as one,
# which halves the time of a build; -DPD_UNITY=OFF compiles each alone, which is
# quicker where one source changes again and again.
option(PD_UNITY "compile sources of a room together" ON)

# pd_unite(TARGET [ALONE SOURCES...]): its sources are compiled together but for
# SOURCES, each folder's by themselves. Names in the unnamed namespaces of a folder
# have to differ.
function(pd_unite target)
  cmake_parse_arguments(its "" "" "ALONE" ${ARGN})
  set_source_files_properties(${its_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${PD_UNITY} UNITY_BUILD_MODE GROUP)
  # GCC takes an included source for a header, whose unnamed types would differ
  # from one source to the next.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${its_ALONE})
  foreach(source ${sources})
    set(folder generated)
    if(NOT IS_ABSOLUTE ${source})
      get_filename_component(folder ${source} DIRECTORY)
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    endif()
    math(EXPR batch "${count_${folder}} + 0")
    math(EXPR group "${batch} / 8")
    math(EXPR count_${folder} "${batch} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
endfunction()

# pd_room(NAME [PRECOMPILED p] [OPTIMISE o] SOURCES...): an object library of one
# folder; libpd.so is made of them. Release builds compile it at -O2, or at -Oo.
function(pd_room name)
  cmake_parse_arguments(its "" "PRECOMPILED;OPTIMISE" "" ${ARGN})
  add_library(pd_${name} OBJECT ${its_UNPARSED_ARGUMENTS})
  target_link_libraries(pd_${name} PUBLIC pd_flags)
  target_link_libraries(pd_${name} PRIVATE OpenMP::OpenMP_CXX)
  set_property(GLOBAL APPEND PROPERTY PD_ROOMS pd_${name})
  set_target_properties(pd_${name} PROPERTIES PD_OPTIMISE "${its_OPTIMISE}")
  # The bindings of libraries name their functions as their neighbours do, and
  # Highway's files are compiled once for each instruction set.
  if(NOT name MATCHES "^(kernels_cpu|device)$")
    pd_unite(pd_${name})
  endif()
  # A build for sanitizers compiles without optimisation, which halves its time
  # and more; the kernels, which the tests spend their time in, are worth it.
  if(its_PRECOMPILED)
    pd_use_precompiled(pd_${name} ${its_PRECOMPILED})
  elseif(PD_SANITIZE AND name MATCHES "^kernels")
    pd_use_precompiled(pd_${name} pd_precompiled_o1)
  elseif(PD_SANITIZE AND name MATCHES "^(base|formats|data|tensor)$")
    pd_use_precompiled(pd_${name} pd_precompiled_files)
  else()
    pd_use_precompiled(pd_${name} pd_precompiled)
  endif()
endfunction()

# pd_generated_room(NAME SOURCES...): a room of classes that protoc wrote. They
# read little and are compiled quickly; sanitizers would look for protoc's mistakes.
function(pd_generated_room name)
  pd_room(${name} OPTIMISE 1 ${ARGN})
  set_target_properties(pd_${name} PROPERTIES PD_UNSANITIZED ON
    DISABLE_PRECOMPILE_HEADERS ON)
  # Not ours to warn about.
  target_compile_options(pd_${name} PRIVATE -w)
endfunction()

# pd_test_program(NAME SOURCES...): a program of gtest's tests.
function(pd_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE pd pd_test_main OpenMP::OpenMP_CXX)
  pd_use_precompiled(${name} pd_precompiled_tests)
  target_compile_definitions(${name} PRIVATE
    PD_TESTDATA="testdata" PD_BINARY_DIR="${PD_BINARY_DIR}")
endfunction()

# pd_test(NAME SOURCES...): a program and its ctest entry, for tests that replace
# operator new or would disturb their neighbours otherwise, and for lone ones.
function(pd_test name)
  pd_test_program(${name} ${ARGN})
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# pd_tests(TESTS... [WITH SOURCES...] [LIBRARIES l...]): the sources TEST.cc of a
# folder, compiled together as one program tests_FOLDER with what they share. Each
# has the ctest entry TEST, a process that runs the tests of this source alone. All
# that a source declares stands in a namespace of its name.
function(pd_tests)
  cmake_parse_arguments(its "" "" "WITH;LIBRARIES" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(program tests_${folder})
  set(sources ${its_UNPARSED_ARGUMENTS})
  list(TRANSFORM sources APPEND .cc)
  pd_test_program(${program} ${sources} ${its_WITH})
  target_link_libraries(${program} PRIVATE ${its_LIBRARIES})
  pd_unite(${program} ALONE ${its_WITH})
  # GCC warns of GoogleTest's macros in included sources.
  target_compile_options(${program} PRIVATE -Wno-dangling-else)
  foreach(test ${its_UNPARSED_ARGUMENTS})
    pd_test_again(${test} ${test})
  endforeach()
endfunction()

# pd_test_again(NAME TEST): one more ctest entry for a TEST of this folder's
# pd_tests, for another environment.
function(pd_test_again name test)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_test(NAME ${name} COMMAND tests_${folder} --source=${test}.cc)
endfunction()

# pd_camel_case(NAME VARIABLE): VARIABLE is FooBar for the name foo_bar.
function(pd_camel_case name variable)
  string(REPLACE "_" ";" words ${name})
  set(camel "")
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND camel "${first}${rest}")
  endforeach()
  set(${variable} ${camel} PARENT_SCOPE)
endfunction()

# The folder of the headers that programs for PaddlePaddle include, as it is
# installed.
set(PD_COMPAT ${PROJECT_BINARY_DIR}/paddle_compat)
set_property(GLOBAL PROPERTY PD_COMPAT ${PD_COMPAT})

# pd_compat_header(FILE): it is in that folder.
function(pd_compat_header file)
  get_filename_component(name ${file} NAME)
  configure_file(${file} ${PD_COMPAT}/${name} COPYONLY)
endfunction()

# pd_compat_alias(HEADER PATH): programs may include HEADER of that folder as PATH.
function(pd_compat_alias header path)
  get_filename_component(folder ${path} DIRECTORY)
  file(RELATIVE_PATH up ${PD_COMPAT}/${folder} ${PD_COMPAT})
  file(CONFIGURE OUTPUT ${PD_COMPAT}/${path} CONTENT
    "// SPDX-License-Identifier: Apache-2.0\n#include \"${up}${header}\"\n")
endfunction()

# pd_embed(OUTPUT HEADER TYPE FUNCTION FILES...): OUTPUT is made, the source of
# FUNCTION of HEADER, with the texts of FILES.
function(pd_embed output header type function)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DOUTPUT=${output}
      -DHEADER=${header} -DTYPE=${type} -DFUNCTION=${function}
      -P ${PROJECT_SOURCE_DIR}/scripts/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/scripts/cmake/embed_files.cmake
    VERBATIM COMMENT "${function}")
endfunction()
