#include "tests/faults/machine.h"

#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/table.h"
#include "tests/faults/failing_new.h"

namespace bitale::test {

namespace {

// In place of a table's member, the same within the machine.
template <auto member>
struct Within;
template <class Table, class R, class... A, R (*Table::*member)(A...)>
struct Within<member> {
    static inline R (*original)(A...) = nullptr;
    static R call(A... arguments) {
        const WithoutFailing machine;
        return original(arguments...);
    }
    static void put(Table& table) {
        original = table.*member;
        table.*member = call;
    }
};

}  // namespace

void emulator_never_fails() {
    static const bool done = [] {
#define BITALE_WITHIN(result, name, arguments) Within<&Table::name>::put(table);
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

}  // namespace bitale::test
