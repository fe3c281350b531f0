# Code generation knows nests, scalar functions by their opcode, and facts of an op: no op by its name. Only the files
# in `allowed` ask for an op by its record: these rewrite the graph, or make a node in it.
# Run with -DROOT=the repository.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/lines.cmake)
set(allowed
    codegen/group/again.cpp codegen/group/boundary.cpp codegen/group/changed_rows.cpp codegen/group/exact_products.cpp codegen/group/lookups.cpp codegen/group/one_hot_array.cpp codegen/group/one_hot_counts.cpp codegen/group/one_hot_rows.cpp codegen/group/values.cpp
    codegen/group/winners.cpp codegen/pipeline.cpp codegen/split/batch_roles.cpp codegen/split/batches.cpp
    codegen/split/exact_totals.cpp codegen/split/micro_batches.cpp codegen/split/sliced_batches.cpp
    codegen/tune/excerpt.cpp)

set(no "[^A-Za-z0-9_]")  # character of a name; lines are searched with a blank at both ends
set(count 0)
set(faults "")
set(asking "")
file(GLOB_RECURSE sources ${ROOT}/codegen/*.h ${ROOT}/codegen/*.cpp)
foreach(source ${sources})
  file(RELATIVE_PATH name ${ROOT} ${source})
  math(EXPR count "${count} + 1")
  source_lines(lines ${source} "op|name")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "//.*" "" line " ${line} ")
    # The name in a text for people is data; the name in a comparison is knowledge.
    if(line MATCHES "${no}find_op${no}" OR
       line MATCHES "op(->|[.])name *[!=]=" OR line MATCHES "[!=]= *[A-Za-z0-9_.>()-]*op(->|[.])name" OR
       line MATCHES "op(->|[.])name[.](starts_with|ends_with|find|compare|substr)${no}")
      string(STRIP "${line}" line)
      list(APPEND faults "${name}: ${line}")
    elseif(line MATCHES "${no}[a-z][a-z0-9_]*_op\\(\\)")
      list(APPEND asking ${name})
      if(NOT name IN_LIST allowed)
        string(STRIP "${line}" line)
        list(APPEND faults "${name}: ${line}")
      endif()
    endif()
  endforeach()
endforeach()
require_asking("an op")
report_search("Decisions by an op, instead of by its nest, an Opcode or a field of Op" 50 "sources" "no decision by the name of an op")
