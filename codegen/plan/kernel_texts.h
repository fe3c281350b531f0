// The kernels of a program, from their IR to text: equal texts are one kernel.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/kernel/traffic.h"
#include "codegen/print/c_family.h"
#include "codegen/program.h"
#include "codegen/schedule/builder.h"
#include "codegen/target.h"

namespace bitale {

class KernelTexts {
  public:
    // `lengths`: symbols whose values a call knows. Kernels and what their buffers hold are the program's.
    KernelTexts(Program& program, const Target& target, const std::set<std::uint64_t>& lengths)
        : program_(program), target_(target), lengths_(lengths) {}

    // Optimises the IR, verifies and prints it.
    KernelLaunch add(KernelBuilder& builder, const std::string& notes);

  private:
    int numbered(const PrintedKernel& printed, const std::string& readable, const std::string& notes);
    PrintedKernel printed(const KernelBuilder& builder, const struct ReadingNotes* reading) const;

    Program& program_;
    const Target& target_;
    const std::set<std::uint64_t>& lengths_;
    std::map<std::string, int> numbers_;
};

}  // namespace bitale
