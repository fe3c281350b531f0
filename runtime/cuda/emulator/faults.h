// Faults of a GPU, planted in the emulated one to see whether they are found. The variable
//
//     BITALE_EMULATED_FAULT=KIND:WHERE
//
// names a kind, and where: a part of a kernel's name, which means its every launch, or #N, the N-th launch of
// a generated kernel in the process. Kernels of the executor itself (bitale_...) do not count.
//
//     illegal   the launch fails as one that reads what it may not: seen when somebody waits, and by every
//               call from then on
//     illegal-next
//               the same, but streams run at once what is put into them, as those of a GPU may: the next
//               launch or call has the error, whoever's it is
//     wrong     the kernel runs; then the first element of the first buffer that it writes is another one
//     hang      the launch never ends
#pragma once

#include <cstdint>
#include <string>

namespace bitale::cuda {

struct EmulatedKernel;

struct Fault {
    enum class Kind : std::uint8_t { none, illegal, wrong, hang };
    Kind kind = Kind::none;
    std::string kernel;       // a part of its name; empty: by number
    std::int64_t launch = 0;  // counted from 1
    bool at_next = false;     // of illegal-next
};
// Of the variable's text; null stands for an unset one. `problem` has the words where it is malformed.
Fault parse_fault(const char* text, std::string& problem);

// What is wrong with the variable; empty: nothing.
const std::string& fault_problem();
// Whether streams wait for nobody.
bool streams_run_at_once();
// Counts a launch that begins, and says what is to become of it.
Fault::Kind fault_of_launch(const std::string& kernel);
// The `wrong` one, after the launch. `arguments` as the kernel got them.
void spoil_result(const EmulatedKernel& kernel, void* const* arguments);

// An illegal access happened on it: nothing works there any more.
void break_device(int device);
bool device_is_broken();  // the one that this thread has chosen

}  // namespace bitale::cuda
