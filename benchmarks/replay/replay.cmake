# The program of scripts/replay, which has CMake include this file when it configures a commit (CMAKE_PROJECT_bitale_
# INCLUDE): the corpus and what describes plans (REPLAY_STAGE) with the library of that commit, compiled as ever.
function(add_replay)
  file(GLOB sources CONFIGURE_DEPENDS ${REPLAY_STAGE}/tests/corpus/*.cpp)
  add_executable(bitale_replay EXCLUDE_FROM_ALL ${sources})
  # The stage first: the commit may have a corpus of its own.
  target_include_directories(bitale_replay PRIVATE ${REPLAY_STAGE} ${PROJECT_SOURCE_DIR})
  target_link_libraries(bitale_replay PRIVATE bitale_runtime)
  # Its own code is not what is timed. -w: helpers of graphs that are left out.
  target_compile_options(bitale_replay PRIVATE -O0 -w)
  if(REPLAY_BY_HAND)
    target_compile_definitions(bitale_replay PRIVATE STAGES_BY_HAND)
  endif()
endfunction()
cmake_language(DEFER CALL add_replay)
