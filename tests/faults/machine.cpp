#include "tests/faults/machine.h"

#include <atomic>
#include <string_view>

#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/table.h"
#include "tests/faults/failing_new.h"

namespace bitale::test {

namespace {

std::atomic<bool> may_fail{false};

// What waits runs what was submitted, in place of the GPU; what gives back cannot say that it failed.
bool only_takes(std::string_view name) {
    for (const std::string_view part : {"Synchronize", "Query", "Free", "Destroy", "Unload"})
        if (name.find(part) != std::string_view::npos) return false;
    return true;
}

// In place of a table's member, the same within the machine.
template <auto member>
struct Within;
template <class Table, class R, class... A, R (*Table::*member)(A...)>
struct Within<member> {
    static inline R (*original)(A...) = nullptr;
    static inline bool takes = false;
    static R call(A... arguments) {
        if (takes && may_fail) return original(arguments...);
        const WithoutFailing machine;
        return original(arguments...);
    }
    static void put(Table& table, std::string_view name) {
        original = table.*member;
        takes = only_takes(name);
        table.*member = call;
    }
};

}  // namespace

void emulator_never_fails() {
    static const bool done = [] {
#define BITALE_WITHIN(result, name, arguments) Within<&Table::name>::put(table, #name);
        {
            using Table = cuda::RuntimeTable;
            auto& table = const_cast<Table&>(cuda::emulated_runtime());
            BITALE_CUDA_RUNTIME(BITALE_WITHIN)
        }
        {
            using Table = cuda::GraphTable;
            auto& table = const_cast<Table&>(cuda::emulated_graphs());
            BITALE_CUDA_GRAPHS(BITALE_WITHIN)
        }
#undef BITALE_WITHIN
        return true;
    }();
    static_cast<void>(done);
}

FailingEmulator::FailingEmulator() {
    emulator_never_fails();
    may_fail = true;
}
FailingEmulator::~FailingEmulator() { may_fail = false; }

}  // namespace bitale::test
