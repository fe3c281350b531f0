# cmake --install: the library, its headers, bitale-info, and what find_package(bitale) and pkg-config read; cpack: the
# same as a .tar.gz and as a .deb.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/bitale TYPE INCLUDE)
install(TARGETS bitale EXPORT bitale
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET bitale-info)
  # bitale-info finds libbitale.so wherever the folder is put.
  file(RELATIVE_PATH to_library /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  if(BUILD_SHARED_LIBS)
    set_target_properties(bitale-info PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  endif()
  install(TARGETS bitale-info RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES cmake/bitale-info.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME bitale-info)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Programs link to libbitale.so alone; with libbitale.a they link to what it uses, too.
set(dependencies "")
set(pc_requires "")
set(pc_libraries "-lbitale")
if(NOT BUILD_SHARED_LIBS)
  set(dependencies "include(CMakeFindDependencyMacro)\nfind_dependency(ZLIB)\nfind_dependency(Threads)\n")
  set(pc_requires "zlib")
  if(NOT BITALE_PORTABLE)
    string(APPEND dependencies "find_dependency(fmt)\n")
    string(APPEND pc_requires ", fmt")
  endif()
  string(APPEND pc_libraries " -pthread ${CMAKE_DL_LIBS}")
  string(REGEX REPLACE " ([a-z]+)$" " -l\\1" pc_libraries "${pc_libraries}")
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/bitale)
install(EXPORT bitale FILE bitale-targets.cmake NAMESPACE bitale:: DESTINATION ${package})
file(WRITE ${PROJECT_BINARY_DIR}/bitale-config.cmake
  "${dependencies}include(\${CMAKE_CURRENT_LIST_DIR}/bitale-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bitale-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bitale-config.cmake ${PROJECT_BINARY_DIR}/bitale-config-version.cmake
  DESTINATION ${package})

# Found relative to itself, so that the folder may be moved.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/bitale.pc CONTENT [[
prefix=${pcfiledir}/@to_prefix@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: bitale
Description: Computation graphs in C++20, compiled to fused kernels at run time; compile with -std=c++20
Version: @PROJECT_VERSION@
Requires: @pc_requires@
Libs: -L${libdir} @pc_libraries@
Cflags: -I${includedir}
]] @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/bitale.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME bitale)
set(CPACK_PACKAGE_VENDOR Bitale)
set(CPACK_PACKAGE_CONTACT "Bitale's maintainers <maintainers@bitale.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Computation graphs in C++20, compiled to fused kernels at run time")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(NOT BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libfmt-dev, zlib1g-dev")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ | c++-compiler")  # compiles kernels at run time
include(CPack)
