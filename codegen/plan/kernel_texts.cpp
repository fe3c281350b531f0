#include "codegen/plan/kernel_texts.h"

#include <algorithm>

#include "codegen/kernel/collect.h"
#include "codegen/kernel/fuse.h"
#include "codegen/kernel/guarded.h"
#include "codegen/kernel/hazards.h"
#include "codegen/kernel/lane_masks.h"
#include "codegen/kernel/of_lengths.h"
#include "codegen/kernel/quotients.h"
#include "codegen/kernel/ranges.h"
#include "codegen/kernel/tails.h"
#include "codegen/kernel/turned_reads.h"
#include "codegen/kernel/wide_lanes.h"
#include "codegen/plan/names.h"
#include "codegen/print/comments.h"
#include "codegen/print/dialect.h"
#include "codegen/print/reading.h"
#include "graph/base/text.h"
#include "graph/ir/array_bytes.h"

namespace bitale {

KernelLaunch KernelTexts::add(KernelBuilder& builder, const std::string& notes) {
    Traffic traffic = traffic_of(builder.ir);
    const bool vectors = target_.has_vectors(),
               exactly = target_.reads_exactly || target_.vector_bytes > bytes_behind_array;
    if (vectors) fuse_loops(builder.ir);
    if (vectors && !target_.fast_compile) {
        cut_at_quotients(builder.ir);
        cut_at_guards(builder.ir, lengths_);
        if (!exactly) transpose_reads(builder.ir, lengths_);
        collect_lanes(builder.ir);
        fill_tails(builder.ir, target_.vector_bytes);
        widen_lanes(builder.ir);
    }
    if (exactly) read_exactly(builder.ir);
    if (vectors) keep_values_of_lengths(builder.ir, lengths_);
    if (target_.checked_loops) check_ranges(builder.ir);
    verify(builder.ir, lengths_);
    verify_phases(builder.ir);
    PrintedKernel text = printed(builder, nullptr);
    std::string readable;
    if (target_.readable) {
        std::vector<std::string> buffers;
        for (const int b : builder.buffers) buffers.push_back(describe(program_, b));
        ReadingNotes reading = notes_for_reading(builder.ir, buffers);
        readable = printed(builder, &reading).body;
        reading.lines = true;
        if (target_.debug_lines) text.body = printed(builder, &reading).body;
    }
    for (std::size_t b = 0; b < builder.buffers.size(); ++b)
        if (program_.buffers[static_cast<std::size_t>(builder.buffers[b])].kind == BufferInfo::Kind::slice)
            traffic.read[b] = traffic.written[b] = 0;
    const int kernel = numbered(text, readable, notes);
    std::vector<int>& threads = program_.kernels[static_cast<std::size_t>(kernel)].cuda_threads;
    if (target_.tasks_have_threads() && threads.empty())
        for (const Phase& phase : builder.ir.phases) threads.push_back(threads_of(phase));
    return {kernel, builder.buffers, std::move(text.sizes), std::move(traffic.read),
            std::move(traffic.written)};
}

PrintedKernel KernelTexts::printed(const KernelBuilder& builder, const ReadingNotes* reading) const {
    const Dialect dialect = dialect_of(target_);
    PrintedKernel text = print_kernel(builder.ir, dialect, reading);
    text.body = arguments_type(dialect, builder.ir.buffers, text.sizes.size()) + text.body;
    if (target_.has_vectors() && masks_lanes_by_other_indices(builder.ir))
        text.body = without_chosen_variables(text.body);
    return text;
}

int KernelTexts::numbered(const PrintedKernel& printed, const std::string& readable,
                          const std::string& notes) {
    const std::string name = "k_" + hash_text(without_comments(printed.body));
    const auto [at, is_new] = numbers_.emplace(name, static_cast<int>(program_.kernels.size()));
    if (!is_new) return at->second;
    KernelText kernel;
    kernel.name = name;
    for (const std::string& suffix : printed.suffixes) kernel.entries.push_back(name + suffix);
    body_in(kernel, dialect_of(target_)) = replaced(printed.body, "KERNEL", name);
    kernel.readable = replaced(readable, "KERNEL", name);
    kernel.notes = notes;
    program_.kernels.push_back(std::move(kernel));
    return at->second;
}

}  // namespace bitale
