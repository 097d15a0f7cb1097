# What `cmake --install` puts where, and the Debian packages, one for each
# component: tools, library, development. Everything finds everything else from
# any prefix: tools know libpd.so by ../lib, pdkit.pc and pdkitConfig.cmake their
# prefix by their own place.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "where libpd.so is installed")
include(GNUInstallDirs)

get_property(tools GLOBAL PROPERTY PD_TOOLS)
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(tool ${tools})
  string(REPLACE "_" "-" command pd-${tool})
  set_target_properties(${command} PROPERTIES INSTALL_RPATH "\$ORIGIN/${up}")
  install(TARGETS ${command} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endforeach()
set(to_library DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  NAMELINK_COMPONENT development)
get_property(engines GLOBAL PROPERTY PD_ENGINES)
set_target_properties(pd_onnx ${engines} PROPERTIES INSTALL_RPATH "\$ORIGIN")
install(TARGETS pd pd_onnx ${engines} LIBRARY ${to_library})
# PaddlePaddle's prediction APIs, which programs link as paddle_inference and,
# in C, as paddle_inference_c.
set_target_properties(paddle_inference PROPERTIES INSTALL_RPATH "\$ORIGIN")
install(TARGETS paddle_inference LIBRARY ${to_library})
install(FILES ${PROJECT_BINARY_DIR}/lib/libpaddle_inference_c.so
  DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# What runs bundles, for programs that take nothing else of pdkit.
install(TARGETS pd_run_static pd_run_shared LIBRARY ${to_library}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/libcore/bundle/runtime/pd_run.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
get_property(compat GLOBAL PROPERTY PD_COMPAT)
install(DIRECTORY ${compat} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pdkit
  COMPONENT development)

# Public headers: those of libcore and formats that show no other library, nor
# include one that does.
file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  formats/*.h libcore/*/*.h)
list(FILTER headers EXCLUDE REGEX "^libcore/(bundle|kernels|inference|serve)/")
set(private "<(dnnl|google/|Eigen/|hwy/|onnx/|nlohmann/)|\"[^\"]*[.]pb[.]h|\"libcore/(kernels|[a-z]+/[a-z]+)/")
set(before "")
while(NOT before STREQUAL headers)
  set(before "${headers}")
  foreach(header ${before})
    file(STRINGS ${header} hidden LIMIT_COUNT 1 REGEX "^#include (${private})")
    if(hidden)
      list(REMOVE_ITEM headers ${header})
      string(REPLACE "." "\\." escaped ${header})
      string(APPEND private "|\"${escaped}")
    endif()
  endforeach()
endwhile()
# How a program gets at the kernels, whose own headers stay here.
list(APPEND headers libcore/kernels/make_registry.h)
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pdkit/${folder}
    COMPONENT development)
endforeach()

set(PD_VERSION ${PROJECT_VERSION})
set(package ${PROJECT_SOURCE_DIR}/scripts/cmake/package)
foreach(pair pdkit.pc:pkgconfig pdkit-inference.pc:pkgconfig
    pdkit-run.pc:pkgconfig
    pdkitConfig.cmake:cmake/pdkit pdkitConfigVersion.cmake:cmake/pdkit)
  string(REPLACE ":" ";" pair ${pair})
  list(POP_FRONT pair name)
  file(RELATIVE_PATH PD_UP ${CMAKE_INSTALL_FULL_LIBDIR}/${pair} ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" PD_UP "${PD_UP}")
  configure_file(${package}/${name}.in ${PROJECT_BINARY_DIR}/package/${name} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/${pair} COMPONENT development)
endforeach()

file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.1)
# Tools' manual, completions, documents and starters are theirs.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_SOURCE_DIR}/man/pd-job.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES ${PROJECT_SOURCE_DIR}/man/pd-upgrade.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/bash-completion
  ${PROJECT_BINARY_DIR}/share/fish DESTINATION ${CMAKE_INSTALL_DATADIR})
# Debian's zsh looks for packages' functions in a folder of another name.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr$\")
    set(folder vendor-completions)
  endif()
  file(INSTALL \"${PROJECT_BINARY_DIR}/share/zsh/site-functions/\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")")
# All documents, in the folders of the sources, so that the links between them
# hold.
file(GLOB documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS *.md)
file(GLOB_RECURSE room_documents RELATIVE ${PROJECT_SOURCE_DIR}
  CONFIGURE_DEPENDS cmd/*.md formats/*.md libcore/*.md scripts/*.md tests/*.md)
file(GLOB_RECURSE data_documents RELATIVE ${PROJECT_SOURCE_DIR} testdata/*.md)
foreach(document LICENSE tests/bench/curves.svg libcore/serve/grpc/kserve.proto
    ${documents} ${room_documents} ${data_documents})
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
file(GLOB starters CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmd/starters/*.pbtxt)
install(FILES ${starters} DESTINATION ${CMAKE_INSTALL_DOCDIR}/starters)

# cpack -G DEB; scripts/package does it. Depends comes from dpkg-shlibdeps, but
# for what the packages need of each other.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pdkit)
set(CPACK_PACKAGE_CONTACT
  "pdkit maintainers <maintainers@pdkit.invalid>")
set(CPACK_COMPONENTS_ALL tools library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "train, evaluate and export neural networks from the command line
Neural networks with PaddlePaddle's operators and file formats, without
Python: pd-train trains one that a text file describes, pd-eval evaluates it,
pd-export writes it for PaddlePaddle and ONNX runtimes, pd-quant makes it
compute with 8-bit integers, pd-convert converts and shows model and parameter
files, pd-check-naninf finds the first number that is none, pd-profile shows
where time and memory go.")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "neural networks with PaddlePaddle's operators (libraries)
The library libpd, PaddlePaddle's prediction APIs in C++ and C on top of it
(libpaddle_inference), and libpd_run, which runs bundles, small files of neural
networks, and takes no other library of this package.")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "neural networks with PaddlePaddle's operators (development files)
Headers, links, pkg-config and CMake files for programs that use libpd,
PaddlePaddle's prediction APIs or libpd_run, and for PaddlePaddle's custom
operators, kernels and devices.")
set(version "${PROJECT_VERSION}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME pdkit)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libpd0 (= ${version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "man-db")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "bash-completion, libpd-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpd0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${package}/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpd-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libpd0 (= ${version}), libabsl-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "g++, make, pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${package}/debian_files.cmake)
set(CPACK_PD_SOURCE ${PROJECT_SOURCE_DIR})
include(CPack)
