# cmake --install, and the package that find_package(bitale) reads: link to bitale::bitale.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/bitale TYPE INCLUDE)
install(TARGETS bitale_graph bitale_ops bitale_codegen bitale_runtime EXPORT bitale
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(tool_targets)
  install(TARGETS ${tool_targets} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/bitale)
install(EXPORT bitale FILE bitale-targets.cmake NAMESPACE bitale:: DESTINATION ${package})
file(WRITE ${PROJECT_BINARY_DIR}/bitale-config.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(ZLIB)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/bitale-targets.cmake)
]])
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bitale-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bitale-config.cmake ${PROJECT_BINARY_DIR}/bitale-config-version.cmake
  DESTINATION ${package})
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
