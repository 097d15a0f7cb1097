# What every room of the tree builds with: flags, and the functions that add
# sources, tools and tests.

add_library(pd_flags INTERFACE)
target_compile_features(pd_flags INTERFACE cxx_std_17)
target_include_directories(pd_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
# The floor is AVX2; wider vectors are chosen at run time (Highway, oneDNN).
target_compile_options(pd_flags INTERFACE
  -march=x86-64-v3 -Wall -Wextra -Werror=unused-result -Wno-missing-field-initializers
  $<$<CONFIG:Release>:-O2>)
if(PD_SANITIZE)
  # Pointers' uses are checked where bytes of files and memory are handled;
  # everywhere would cost 40 % of the time to compile. Arithmetic is checked in
  # all of the tree.
  string(REPLACE "undefined"
    "signed-integer-overflow,shift,integer-divide-by-zero,bounds,enum,bool,return"
    PD_SANITIZE_ALL "${PD_SANITIZE}")
  target_compile_options(pd_flags INTERFACE
    -fsanitize=${PD_SANITIZE_ALL} -fno-omit-frame-pointer -g1)
  target_link_options(pd_flags INTERFACE -fsanitize=${PD_SANITIZE})
endif()

find_program(PD_CCACHE ccache)
if(PD_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PD_CCACHE})
endif()
find_program(PD_MOLD mold)
if(PD_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# pd_room(NAME SOURCES...): an object library of one folder; libpd.so is made of them.
function(pd_room name)
  add_library(pd_${name} OBJECT ${ARGN})
  target_link_libraries(pd_${name} PUBLIC pd_flags)
  target_link_libraries(pd_${name} PRIVATE OpenMP::OpenMP_CXX)
  set_property(GLOBAL APPEND PROPERTY PD_ROOMS pd_${name})
  # A build for sanitizers compiles the many operators without optimisation,
  # which halves its time; what the tests spend their time in is worth it.
  if(PD_SANITIZE AND name MATCHES "^(kernels.*|base|formats|data|tensor)$")
    target_compile_options(pd_${name} PRIVATE -O1 -fsanitize=${PD_SANITIZE})
  endif()
endfunction()

# pd_test(NAME SOURCES...): one gtest executable and its ctest entry.
function(pd_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE pd GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    PD_TESTDATA="${PROJECT_SOURCE_DIR}/testdata"
    PD_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
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
