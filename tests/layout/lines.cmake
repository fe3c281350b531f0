# source_lines(VARIABLE FILE REGEX): the lines of a source that match, as a list.
# file(STRINGS) hides lines: an item of a list does not end between an opening bracket and its closing one, nor behind a
# backslash, so after one "[" the rest of the file is one item. Here "[" is "(", "]" is ")", a backslash is "/" and a
# semicolon is "$".
function(source_lines variable file regex)
  file(READ ${file} lines)
  string(REPLACE "[" "(" lines "${lines}")
  string(REPLACE "]" ")" lines "${lines}")
  string(REPLACE "\\" "/" lines "${lines}")
  string(REPLACE ";" "$" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  list(FILTER lines INCLUDE REGEX "${regex}")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# report_search(HEADING LEAST UNITS NONE): ends a script that has looked at `count` UNITS and lists `faults`.
macro(report_search heading least units none)
  if(faults)
    list(JOIN faults "\n  " faults)
    message(FATAL_ERROR "${heading}:\n  ${faults}")
  endif()
  if(count LESS ${least})
    message(FATAL_ERROR "Only ${count} ${units} found below ${ROOT}: is this the repository?")
  endif()
  message(STATUS "${count} ${units}, ${none}")
endmacro()

# require_asking(WHAT): the list `allowed` has no file that is not in `asking`.
macro(require_asking what)
  foreach(name ${allowed})
    if(NOT name IN_LIST asking)
      list(APPEND faults "${name} no longer asks for ${what}: take it off the list")
    endif()
  endforeach()
endmacro()
