# Installs the build BINARY into an empty prefix below STAGE, then configures, builds and runs CONSUMER against it.
cmake_minimum_required(VERSION 3.22)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${STAGE})
run(${CMAKE_COMMAND} --install ${BINARY} --prefix ${STAGE}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${STAGE}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${STAGE}/prefix)
run(${CMAKE_COMMAND} --build ${STAGE}/build)
run(${STAGE}/build/consumer)
