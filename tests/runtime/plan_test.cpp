// Plans of the examples' networks, walked on the device "null": what is materialised, how large, and why; how
// many nodes a step has.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::test;

namespace {

using BufferKind = BufferInfo::Kind;
using Values = std::map<std::uint64_t, std::int64_t>;

// The symbols of a call with minibatch number i: the only argument of these functions.
Values values_of(const Program& program, std::int64_t i) {
    Values values;
    for (const SizeSource& source : program.size_sources) values[source.symbol] = i;
    return values;
}

std::vector<const Step*> steps_of(const Program& program) {
    std::vector<const Step*> list;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) list.push_back(&step);
    return list;
}

// Nodes of the graph that a step is captured into: each phase of a kernel is one.
std::size_t nodes_of(const Program& program) {
    std::size_t nodes = 0;
    for (const Step& step : program.body.steps) {
        const auto* kernel = std::get_if<KernelStep>(&step.operation);
        nodes += kernel ? kernel->tasks.size() : 1;
    }
    return nodes;
}

const BufferInfo& buffer_of(const Program& program, int b) {
    return program.buffers.at(static_cast<std::size_t>(b));
}

bool library_reads(const Program& program, int buffer) {
    for (const Step* step : steps_of(program))
        if (const auto* gemm = std::get_if<GemmStep>(&step->operation);
            gemm && (gemm->a == buffer || gemm->b == buffer))
            return true;
    return false;
}

// Nothing but shared variables may be as long as the data set, and of a minibatch's pixels a float copy may
// exist only as the operand of a library call.
void check_buffers(const Program& program, const NetOptions& options, std::int64_t pixels_of_batch) {
    const Values values = values_of(program, 0);
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& info = program.buffers[b];
        if (info.kind == BufferKind::shared) continue;
        std::int64_t count = 1;
        for (const Int& length : info.type.shape) {
            const std::int64_t n = evaluate(length, values);
            INFO(program.name << ": buffer " << b << " \"" << info.name << "\" has an axis of " << n);
            CHECK(n < options.images);
            count *= n;
        }
        const bool pixels = is_float(info.type.dtype) && count == pixels_of_batch;
        INFO(program.name << ": buffer " << b << " \"" << info.name << "\" is a float copy of the pixels");
        CHECK((!pixels || library_reads(program, static_cast<int>(b))));
    }
}

void check_reasons(const Function& f) {
    const std::string report = f.report(Detail::complete);
    for (const BufferInfo& info : f.state().program->buffers) {
        if (info.kind != BufferKind::arena) continue;
        INFO(f.name() << ": \"" << info.name << "\"");
        CHECK(info.reason.size() > 5);
        CHECK(report.find(": " + info.reason) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("nothing wider than a minibatch is materialised") {
    for (const std::string& name : net_names())
        for (const DType storage : {uint8, int8}) {
            NetOptions options = options_of(name);
            options.storage = storage;
            const Net net = make_net(name, options);
            check_buffers(*net.step.state().program, options, options.batch * net.pixels);
            check_buffers(*net.evaluation.state().program, options, options.test_batch * net.pixels);
        }
}

TEST_CASE("the arena does not grow with the data set") {
    for (const std::string& name : net_names()) {
        std::vector<std::int64_t> bytes;
        for (const std::int64_t images : {2000, 60000}) {
            NetOptions options = options_of(name);
            options.images = images;
            const Net net = make_net(name, options);
            for (const Function* f : {&net.step, &net.evaluation}) {
                const Program& program = *f->state().program;
                bytes.push_back(plan_arena(program, values_of(program, 0)).bytes);
            }
        }
        INFO(name);
        CHECK(bytes[0] == bytes[2]);
        CHECK(bytes[1] == bytes[3]);
    }
}

TEST_CASE("the last, smaller minibatch needs less") {
    const Net net = make_net("small", {.images = 1000});
    const Program& program = *net.step.state().program;
    CHECK(plan_arena(program, values_of(program, 7)).bytes <
          plan_arena(program, values_of(program, 0)).bytes);
}

TEST_CASE("a training step has few nodes") {
    const std::map<std::string, std::size_t> most = {
        {"logistic", 4}, {"mlp", 9}, {"small", 12}, {"cifar", 16}};
    for (const auto& [name, limit] : most) {
        const Net net = make_net(name, options_of(name));
        const Program& program = *net.step.state().program;
        INFO(net.step.report(Detail::complete));
        CHECK(nodes_of(program) <= limit);
        CHECK(program.once.steps.empty());
    }
}

TEST_CASE("one kernel updates all parameters") {
    for (const std::string& name : net_names()) {
        const Net net = make_net(name, options_of(name));
        const Program& program = *net.step.state().program;
        std::set<const SharedState*> params;
        for (const Shared& p : net.params) params.insert(p.state().get());
        int kernels = 0;
        for (const Step& step : program.body.steps) {
            // A kernel that commits before the others (Adam's count of steps) reads parameters only.
            const auto writes = [&](int b) {
                const BufferInfo& info = buffer_of(program, b);
                return info.kind == BufferKind::shared &&
                       params.contains(program.shared[static_cast<std::size_t>(info.index)].get());
            };
            const auto* kernel = std::get_if<KernelStep>(&step.operation);
            if (!kernel || !step.commits) continue;
            const std::vector<int>& buffers = kernel->launch.buffers;
            const std::string body = program.kernels[static_cast<std::size_t>(kernel->launch.kernel)].body;
            bool updates = false;
            for (std::size_t at = 0; at < buffers.size(); ++at) {
                // Only buffers that a kernel writes are bound without const.
                const std::string bound = fmt::format(" = (f32*)buffers[{}];", at);
                updates = updates || (writes(buffers[at]) && body.find(bound) != std::string::npos);
            }
            kernels += updates;
        }
        INFO(net.step.report(Detail::complete));
        CHECK(kernels == 1);
        for (const Step& step : program.body.steps) CHECK(!std::holds_alternative<CopyStep>(step.operation));
    }
}

TEST_CASE("the report explains each materialised buffer") {
    for (const std::string& name : net_names()) {
        const Net net = make_net(name, options_of(name));
        check_reasons(net.step);
        check_reasons(net.evaluation);
    }
}
