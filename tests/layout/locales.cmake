# Numbers are written and read alike in every locale, which is the program's: with {fmt}, or by graph/base/numbers.h.
# Run with -DROOT=the repository.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/lines.cmake)
set(word "(^|[^a-zA-Z_0-9])")
set(patterns
  "${word}(strto(d|f|ld)|atof|sto(d|f|ld)|strfrom(d|f|l)|v?sn?printf_l|v?[fs]?scanf|[efg]cvt|strftime|put_time)[ ]*[(]"
  "printf.*%[-+ #0-9.*lL]*[aefgAEFG]"
  "${word}is(alnum|alpha|blank|cntrl|graph|lower|print|punct|space|upper)[(]static_cast"
  "${word}std::(is(alnum|alpha|blank|cntrl|graph|lower|print|punct|space|upper)|to(lower|upper))[(]"
  "${word}std::o?stringstream"
  "${word}(setlocale|localeconv|uselocale)[(]"
  ":[-<>^+#0-9.]*L[a-z]?}")
set(any "printf|strto|strf|ato|sto|scanf|cvt|time|is[a-z]+[(]|to[a-z]+[(]|stringstream|locale|L[a-z]?}")

set(count 0)
set(faults "")
foreach(folder graph ops codegen runtime include)
  file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp)
  foreach(source ${sources})
    math(EXPR count "${count} + 1")
    source_lines(lines ${ROOT}/${source} "${any}")
    list(FILTER lines EXCLUDE REGEX "^ *//")
    foreach(pattern ${patterns})
      set(matching ${lines})
      list(FILTER matching INCLUDE REGEX "${pattern}")
      foreach(line IN LISTS matching)
        list(APPEND faults "${source}: ${line}")
      endforeach()
    endforeach()
  endforeach()
endforeach()

report_search("Text that depends on the locale" 300 "files" "no text in them depends on the locale")
