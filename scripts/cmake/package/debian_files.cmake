# What Debian's policy wants in packages: compressed man pages, copyright and
# changelog in each. Run by cpack when everything is in its place, which is a
# folder for each component.
set(package ${CPACK_PD_SOURCE}/scripts/cmake/package)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
  set(doc ${root}/doc/${name})
  configure_file(${package}/copyright ${doc}/copyright COPYONLY)
  configure_file(${package}/changelog.in ${doc}/changelog @ONLY)
  file(REMOVE ${doc}/LICENSE)
  file(GLOB pages ${root}/man/man*/*.[1-9])
  execute_process(COMMAND gzip -9nf ${pages} ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${package}/${name}.lintian-overrides)
    file(MAKE_DIRECTORY ${root}/lintian/overrides)
    configure_file(${package}/${name}.lintian-overrides ${root}/lintian/overrides/${name} COPYONLY)
  endif()
endforeach()
