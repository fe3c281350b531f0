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
