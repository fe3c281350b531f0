// What a compiled function consists of, for people.
#pragma once

#include <string>
#include <vector>

#include "bitale/function.h"
#include "codegen/program.h"

namespace bitale {

// One entry per step of the program, in order; equal kernels are listed each time they are launched.
std::vector<Kernel> kernel_list(const Program& program, const std::string& device);
std::string step_name(const Program& program, const Step& step);  // as in that list
// `planned`: values of the signature's symbols, for estimates until there is a call.
std::string report_of(const Function::State& state, Detail detail,
                      const std::vector<std::int64_t>& planned = {});
// The parts of it: one screen, and everything, of a state that has a program.
std::string brief_report(const Function::State& state, const std::vector<std::int64_t>& planned);
std::string full_report(const Function::State& state);

}  // namespace bitale
