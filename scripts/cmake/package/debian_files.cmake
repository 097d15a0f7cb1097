# What Debian's policy wants in a package: compressed man pages, copyright and
# changelog. Run by cpack when everything is in its place.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${root}/doc/pdkit)
set(package ${CPACK_PD_SOURCE}/scripts/cmake/package)
file(GLOB pages ${root}/man/man*/*.[1-9])
configure_file(${package}/copyright ${doc}/copyright COPYONLY)
configure_file(${package}/changelog.in ${doc}/changelog @ONLY)
file(REMOVE ${doc}/LICENSE)
execute_process(COMMAND gzip -9nf ${pages} ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${root}/lintian/overrides)
configure_file(${package}/lintian-overrides ${root}/lintian/overrides/pdkit COPYONLY)
