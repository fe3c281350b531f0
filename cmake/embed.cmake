# The helper headers for generated code become string literals of bitale_codegen: each codegen/device/NAME.h is
# embedded byte for byte as `const char* const device_NAME`, declared in the generated "codegen/device/embedded.h".
# This file is also the script (cmake -P) that writes the two files.
if(CMAKE_SCRIPT_MODE_FILE)
  set(declarations "")
  set(definitions "")
  foreach(header IN LISTS HEADERS)
    get_filename_component(name "${header}" NAME_WE)
    # Hexadecimal passes through CMake's lists and escapes unharmed: quotes, brackets and backslashes do not.
    file(READ "${header}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x0a,)" "\\1\n" bytes "${bytes}")
    string(APPEND declarations "extern const char* const device_${name};\n")
    string(APPEND definitions "static const unsigned char bytes_of_${name}[] = {\n${bytes}0};\n"
      "const char* const device_${name} = reinterpret_cast<const char*>(bytes_of_${name});\n")
  endforeach()
  file(WRITE "${DIRECTORY}/codegen/device/embedded.h"
    "// Generated: the texts of the helper headers in codegen/device.\n#pragma once\n\n"
    "namespace bitale {\n\n${declarations}\n}  // namespace bitale\n")
  file(WRITE "${DIRECTORY}/embedded.cpp"
    "#include \"codegen/device/embedded.h\"\n\nnamespace bitale {\n\n${definitions}\n}  // namespace bitale\n")
  return()
endif()

# Compiles the texts of the headers (the remaining arguments) into `target`; the two files go to `directory`.
function(bitale_embed target directory)
  set(headers ${ARGN})
  add_custom_command(
    OUTPUT ${directory}/embedded.cpp ${directory}/codegen/device/embedded.h
    COMMAND ${CMAKE_COMMAND} "-DHEADERS=${headers}" -DDIRECTORY=${directory} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the helper headers" VERBATIM)
  target_sources(${target} PRIVATE ${directory}/embedded.cpp ${directory}/codegen/device/embedded.h)
  target_include_directories(${target} BEFORE PRIVATE ${directory})
endfunction()

file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/codegen/device/*.h)
bitale_embed(bitale_codegen ${PROJECT_BINARY_DIR}/generated ${helpers})
