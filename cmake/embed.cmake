# The helper headers for generated code become constants of bitale_codegen: each codegen/device/NAME.h is embedded
# byte for byte as the string_view device_NAME, of the generated "codegen/device/embedded.h". No code has to run
# before it can be read: objects of the program's that are made before main build functions.
# This file is also the script (cmake -P) that writes the two files.
if(CMAKE_SCRIPT_MODE_FILE)
  set(declarations "")
  set(definitions "")
  foreach(header IN LISTS HEADERS)
    get_filename_component(name "${header}" NAME_WE)
    # Hexadecimal passes through CMake's lists and escapes unharmed: quotes, brackets and backslashes do not.
    file(READ "${header}" bytes HEX)
    string(LENGTH "${bytes}" digits)
    math(EXPR count "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(REGEX REPLACE "(x0a',)" "\\1\n" bytes "${bytes}")
    string(APPEND declarations "extern const char bytes_of_${name}[${count}];\n"
      "inline constexpr std::string_view device_${name}(bytes_of_${name}, ${count});\n")
    string(APPEND definitions "const char bytes_of_${name}[${count}] = {\n${bytes}};\n")
  endforeach()
  file(WRITE "${DIRECTORY}/codegen/device/embedded.h"
    "// Generated: the texts of the helper headers in codegen/device.\n#pragma once\n\n"
    "#include <string_view>\n\nnamespace bitale {\n\n${declarations}\n}  // namespace bitale\n")
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
