# The scripts that read sources find what is planted, also behind a bracket that nothing closes and behind a line that ends
# in a backslash. Run with -DROOT=the repository and -DCOPY=a folder to plant it in.
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE ${COPY})
foreach(folder graph ops codegen runtime include examples)
  file(COPY ${ROOT}/${folder} DESTINATION ${COPY} FILES_MATCHING PATTERN *.h PATTERN *.cpp PATTERN *.inc)
endforeach()
file(WRITE ${COPY}/codegen/planted.h [=[
#include "graph/base/check.h"  // a bracket that nothing closes: [
#include "runtime/function.h"
namespace bitale {  // [
struct Target {
    // std::thread(worker) [
    std::thread(worker);
    std::snprintf(text, sizeof text, "%.9g", x);
#define PLANTED \
    bool on_cpu() const { return kind == Kind::cpu; }
    bool is_dot(const Node& node) const { return node.op->name == "dot"; }
};
}  // namespace bitale
]=])

foreach(script include_arrows type_names target_facts op_names doors locales)
  foreach(root ${ROOT} ${COPY})
    execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${root} -P ${CMAKE_CURRENT_LIST_DIR}/${script}.cmake
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    set(failed_${root} ${status})
  endforeach()
  if(NOT failed_${ROOT} EQUAL 0)
    message(FATAL_ERROR "${script} fails without what is planted")
  endif()
  if(failed_${COPY} EQUAL 0 OR NOT output MATCHES "codegen/planted.h")
    message(FATAL_ERROR "${script} does not find what is planted in codegen/planted.h:\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE ${COPY})
message(STATUS "what is planted is found")
