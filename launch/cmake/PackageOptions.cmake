# Read by cpack for each generator.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL programs)
else()
  set(CPACK_COMPONENTS_ALL programs libraries)
  set(CPACK_PACKAGING_INSTALL_PREFIX "")
endif()
