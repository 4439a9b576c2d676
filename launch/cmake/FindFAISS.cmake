# Defines FAISS::faiss.
find_path(FAISS_INCLUDE_DIR faiss/Index.h)
find_library(FAISS_LIBRARY faiss)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FAISS REQUIRED_VARS FAISS_LIBRARY FAISS_INCLUDE_DIR)
if(FAISS_FOUND AND NOT TARGET FAISS::faiss)
  add_library(FAISS::faiss UNKNOWN IMPORTED)
  set_target_properties(FAISS::faiss PROPERTIES
    IMPORTED_LOCATION ${FAISS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${FAISS_INCLUDE_DIR})
endif()
