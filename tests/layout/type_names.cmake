# A name belongs to one type: two headers that define types of one name in one namespace break the rule of one
# definition. The linker keeps one of their inline functions, and objects of the other type are destroyed by it.
# Run with -DROOT=the repository.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/lines.cmake)

set(count 0)
set(faults "")
foreach(folder graph ops codegen runtime include)
  file(GLOB_RECURSE headers ${ROOT}/${folder}/*.h)
  foreach(header ${headers})
    file(RELATIVE_PATH path ${ROOT} ${header})
    if(path MATCHES "^codegen/device/|/emulator/libraries/")  # text of kernels, and libraries by themselves
      continue()
    endif()
    set(namespace "")
    source_lines(lines ${header} "^(namespace|class|struct|enum class|union) [^$]*{")  # $: a semicolon
    foreach(line IN LISTS lines)
      if(line MATCHES "^namespace ([a-z_0-9:]+)")
        set(namespace ${CMAKE_MATCH_1})
      elseif(line MATCHES "^(class|struct|enum class|union) +([A-Za-z_0-9:]*[A-Za-z_0-9])")
        math(EXPR count "${count} + 1")
        set(type "${namespace}::${CMAKE_MATCH_2}")
        string(MAKE_C_IDENTIFIER "${type}" key)
        if(DEFINED defined_${key})
          list(APPEND faults "${type}: ${defined_${key}} and ${path}")
        endif()
        set(defined_${key} ${path})
      endif()
    endforeach()
  endforeach()
endforeach()

report_search("Types of one name" 200 "types" "each with a name of its own")
