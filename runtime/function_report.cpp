// What a Function tells about itself.
#include <mutex>

#include "bitale/function.h"
#include "graph/base/border.h"
#include "graph/ir/shared.h"
#include "graph/show/debugprint.h"
#include "graph/show/dot.h"
#include "runtime/example_shapes.h"
#include "runtime/picture.h"
#include "runtime/recomputed.h"
#include "runtime/report.h"
#include "runtime/state.h"

namespace bitale {

namespace {

const ApiBorder reporting("for a report");

// The state that reports are about: the version that was used last.
Specialised::Version latest_of(const Function::State& state) {
    return state.specialised && !state.is_compiled() ? state.specialised->latest() : nullptr;
}

std::string optimised_text(const Function::State& state) {
    return debugprint(state.optimised ? *state.optimised : *state.plain);
}

}  // namespace

const std::vector<Kernel>& Function::kernels() const {
    State& state = used(state_);
    if (state.specialised && !state.is_compiled())
        return reporting([&]() -> const std::vector<Kernel>& { return state.specialised->kernels(); });
    const std::lock_guard lock(state.waiting);
    return *state.kernels;
}

std::vector<Kernel> Function::kernels(const ExampleShapes& shapes) const {
    State& state = used(state_);
    if (!state.specialised) {
        reporting([&] { check_shapes(state, shapes); });
        return kernels();
    }
    return reporting([&] {
        const Specialised::Version version = state.specialised->of_shapes(shapes);
        const std::lock_guard lock(version->waiting);
        return *version->kernels;
    });
}

double Function::compile_seconds() const {
    State& state = used(state_);
    const double of_versions = state.specialised ? state.specialised->compile_seconds() : 0;
    const std::lock_guard lock(state.waiting);
    return state.compile_seconds + of_versions;
}

int Function::compiler_runs() const {
    State& state = used(state_);
    const int of_versions = state.specialised ? state.specialised->compiler_runs() : 0;
    const std::lock_guard lock(state.waiting);
    return compiler_runs_of(state) + of_versions;
}

std::string Function::report(Detail detail) const {
    State& state = used(state_);
    return reporting([&] {
        if (state.specialised && !state.is_compiled()) return state.specialised->report(detail);
        const std::lock_guard lock(state.waiting);
        return report_of(state, detail);
    });
}

std::string Function::report(const ExampleShapes& shapes, Detail detail) const {
    State& state = used(state_);
    if (!state.specialised) {
        reporting([&] { check_shapes(state, shapes); });
        return report(detail);
    }
    return reporting([&] {
        const Specialised::Version version = state.specialised->of_shapes(shapes);
        const std::lock_guard lock(version->waiting);
        return report_of(*version, detail);
    });
}

Profile Function::profile() const {
    const State& state = used(state_);
    const std::lock_guard lock(state.device->turns());
    return reporting([&] {
        if (state.specialised && !state.is_compiled()) return Profile{state.specialised->profile()};
        return Profile{state.current.load(std::memory_order_acquire)->profile()};
    });
}

std::int64_t Function::peak_bytes() const {
    State& state = used(state_);
    std::int64_t bytes = 0;
    for (const SharedUse& use : state.shared) {
        const Reading reading(use.variable->turns);
        bytes += use.variable->value.bytes();
    }
    if (state.specialised && !state.is_compiled()) return bytes + state.specialised->arena_bytes();
    return bytes + largest_arena_of(state);
}

std::string debugprint(const Function& f) {
    const Function::State& state = f.state();
    return reporting([&] {
        if (const Specialised::Version version = latest_of(state)) return optimised_text(*version);
        if (state.specialised && !state.is_compiled())
            return state.specialised->missing() + "\n" + optimised_text(state);
        return optimised_text(state);
    });
}

std::string debugprint(const Function& f, const ExampleShapes& shapes) {
    const Function::State& state = f.state();
    if (!state.specialised) {
        reporting([&] { check_shapes(state, shapes); });
        return debugprint(f);
    }
    return reporting([&] { return optimised_text(*state.specialised->of_shapes(shapes)); });
}

std::string graphviz(const Function& f) {
    const Function::State& state = f.state();
    return reporting([&] {
        const Specialised::Version version = latest_of(state);
        return picture_of(version ? *version : state);
    });
}

std::string graphviz(const Expr& x) {
    return reporting([&] { return graphviz(Nodes{x.node()}); });
}

std::string graph_svg(const Function& f) { return svg_of(graphviz(f)); }
std::string graph_svg(const Expr& x) { return svg_of(graphviz(x)); }

}  // namespace bitale
