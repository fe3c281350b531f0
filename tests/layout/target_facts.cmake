# Decisions ask facts of the Target, never the kind of device. Of codegen/, only the files in `allowed` name the kinds,
# and only the printer compares dialects. Run with -DROOT=the repository.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/lines.cmake)
# The Target has the kind, and the language of the text follows from it. gpu_facts.cpp finds facts by name.
set(allowed codegen/target.h codegen/print/dialect.cpp codegen/gpu_facts.cpp)

set(no "[^A-Za-z0-9_]")  # character of a name; lines are searched with a blank at both ends
set(asks
    "${no}Kind::(cpu|cuda|gpu)${no}" "enum class Kind .*${no}cpu${no}" "${no}Target::Kind${no}"
    "${no}(is|on)_(cpu|gpu|cuda)${no}" "${no}(cpu|gpu|cuda)\\(\\)" "target(_|\\(\\))?[.]kind${no}"
    "architecture *[!=]=" "[!=]= *[a-z_.]*architecture")

set(count 0)
set(faults "")
set(asking "")
file(GLOB_RECURSE sources ${ROOT}/codegen/*.h ${ROOT}/codegen/*.cpp)
foreach(source ${sources})
  file(RELATIVE_PATH name ${ROOT} ${source})
  math(EXPR count "${count} + 1")
  source_lines(lines ${source} "[Kk]ind|cpu|gpu|cuda|architecture|Dialect")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "//.*" "" line " ${line} ")
    foreach(ask IN LISTS asks)
      if(line MATCHES "${ask}")
        list(APPEND asking ${name})
        if(NOT name IN_LIST allowed)
          string(STRIP "${line}" line)
          list(APPEND faults "${name}: ${line}")
        endif()
        break()
      endif()
    endforeach()
    if(line MATCHES "${no}Dialect::" AND NOT name MATCHES "^codegen/print/")
      string(STRIP "${line}" line)
      list(APPEND faults "${name}: ${line}")
    endif()
  endforeach()
endforeach()
require_asking("the kind of device")
report_search("Decisions by the kind of device, instead of by a fact of codegen/target.h" 50 "sources" "no decision by the kind of device")
