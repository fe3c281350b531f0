#include "codegen/print/dialect.h"

#include <algorithm>

#include "codegen/print/prelude.h"

namespace bitale {

Dialect dialect_of(const Target& target) {
    return target.kind == Target::Kind::cuda ? Dialect::cuda : Dialect::cpp;
}

std::string& body_in(KernelText& kernel, Dialect dialect) {
    return dialect == Dialect::cuda ? kernel.cuda_body : kernel.body;
}

void add_prelude(Program& program, Dialect dialect, const std::set<std::string>& names) {
    const bool cuda = dialect == Dialect::cuda;
    (cuda ? program.cuda_prelude : program.prelude) = device_prelude(cuda, names);
}

std::string arguments_type(Dialect dialect, int buffers, std::size_t sizes) {
    if (dialect != Dialect::cuda) return "";
    return "struct KERNEL_arguments { void* buffers[" + std::to_string(std::max(1, buffers)) +
           "]; i64 sizes[" + std::to_string(std::max<std::size_t>(1, sizes)) + "]; };\n";
}

}  // namespace bitale
