#include "runtime/memory/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "runtime/report.h"
#include "runtime/storage/arena.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

namespace {

using Kind = MemoryPlan::Kind;
using Values = std::map<std::uint64_t, std::int64_t>;

Values values_of(const Signature& signature, std::span<const std::int64_t> symbols) {
    BITALE_CHECK(symbols.size() == signature.sources.size(), "a plan for other symbols");
    Values values;
    for (std::size_t s = 0; s < symbols.size(); ++s) values.emplace(signature.sources[s].symbol, symbols[s]);
    return values;
}

std::string words_of(const std::vector<Origin>& origins) {
    constexpr std::size_t most_named = 2;
    std::string text;
    std::size_t named = 0;
    for (const Origin& origin : origins) {
        if (origin.where.line == 0) continue;
        if (named++ < most_named) text += (text.empty() ? "" : ", ") + text_of(origin);
    }
    return named > most_named ? fmt::format("{} and {} more", text, named - most_named) : text;
}

// Of a buffer that stands for no value, as "sum (parts)": the statements whose operation its name begins
// with.
std::vector<Origin> named_like(const std::string& name, const std::vector<Origin>& statements) {
    std::vector<Origin> found;
    for (const Origin& origin : statements) {
        const std::string& word = origin.title.empty() ? origin.what : origin.title;
        if (name == word || name.starts_with(word + " (")) found.push_back(origin);
    }
    return found;
}

class PlanMaker {
  public:
    PlanMaker(const Build& build, std::span<const std::int64_t> symbols)
        : build_(build), values_(values_of(build.signature, symbols)) {
        plan_.function = build.signature.function;
        plan_.device = build.device;
        plan_.limit = build.memory_limit;
        for (std::size_t s = 0; s < symbols.size(); ++s)
            plan_.lengths.emplace_back(build.signature.sources[s].value.text(), symbols[s]);
    }

    MemoryPlan run(const Frame& frame, const OwnMemory& own, std::int64_t steps) {
        place_ = own.place;
        program_ = build_.program.get();
        for (const Region* region : {&program_->once, &program_->body})
            for (const Step& step : region->steps) {
                steps_.push_back(&step);
                plan_.steps.push_back({step_name(*program_, step), step.title, region == &program_->once, 0});
            }
        arena(frame);
        inputs();
        for (std::size_t b = 0; b < program_->buffers.size(); ++b) own_block(b, steps);
        for (const OwnMemory::Piece& piece : own.pieces) {
            MemoryPlan::Buffer& buffer = add(piece.kind, piece.name, {}, piece.reason);
            buffer.bytes = buffer.reserved = piece.bytes;
            buffer.on_host = piece.on_host;
        }
        plan_.notes = own.notes;
        return finish();
    }

    MemoryPlan run_without_program() {
        inputs();
        std::vector<SharedPtr> shared;
        for (const NodePtr& node : topological(build_.plain->roots()))
            if (SharedPtr s = shared_of(node);
                s && std::find(shared.begin(), shared.end(), s) == shared.end()) {
                shared.push_back(s);
                own_type(add(Kind::shared, s->name, variable_words(*s), "the value of a shared variable"),
                         node->type);
            }
        for (const NodePtr& output : build_.plain->outputs) {
            MemoryPlan::Buffer& result = own_type(
                add(Kind::result, output->name, words_of({{output->where, title_of(*output)}}), "a result"),
                output->type);
            result.reserved = pooled_bytes(result.bytes);
        }
        plan_.notes.push_back(
            "the graph is evaluated node by node: its intermediate values are not planned, and not in this "
            "list");
        return finish();
    }

  private:
    bool on_host() const { return place_ == OwnMemory::Place::host; }
    // Of a block that holds so much and nothing else, and 64 bytes behind it on a GPU.
    std::int64_t block(std::int64_t bytes) const { return on_host() ? bytes : bytes + 64; }
    int last_step() const { return std::max<int>(0, static_cast<int>(plan_.steps.size()) - 1); }

    MemoryPlan::Buffer& add(Kind kind, std::string name, std::string where, std::string reason) {
        MemoryPlan::Buffer buffer;
        buffer.kind = kind;
        buffer.name = std::move(name);
        buffer.where = std::move(where);
        buffer.reason = std::move(reason);
        buffer.last = last_step();
        plan_.buffers.push_back(std::move(buffer));
        return plan_.buffers.back();
    }

    MemoryPlan::Buffer& own_type(MemoryPlan::Buffer& buffer, const Type& type) const {
        buffer.dtype = type.dtype;
        for (const Int& length : type.shape) buffer.shape.push_back(evaluate(length, values_));
        buffer.formula = text_of(type.shape);
        buffer.bytes = bytes_of(type.dtype, buffer.shape);
        buffer.reserved = buffer.bytes;
        return buffer;
    }

    static std::string variable_words(const SharedState& variable) {
        return variable.where.line ? "shared at " + variable.where.text() : "";
    }

    // What the caller holds. On a GPU there are copies of those that kernels read.
    void inputs() {
        for (const InputInfo& input : build_.signature.inputs) {
            MemoryPlan::Buffer& buffer =
                own_type(add(Kind::argument, input.name,
                             input.where.line ? fmt::format("input at {}", input.where.text()) : "",
                             "an argument of the call"),
                         input.type);
            buffer.on_host = !on_host();
        }
    }

    void arena(const Frame& frame) {
        const Placement& placement = *frame.placement;
        std::vector<std::int64_t> change(plan_.steps.size() + 1, 0);
        const int once = static_cast<int>(program_->once.steps.size());
        for (const Lifetime& life : arena_lifetimes(*program_, values_)) {
            const auto b = static_cast<std::size_t>(life.buffer);
            const BufferInfo& info = program_->buffers[b];
            const Step& made_by = *steps_[static_cast<std::size_t>(first_use(life.buffer))];
            std::string where = words_of(info.origins);
            if (where.empty()) where = words_of(named_like(info.name, made_by.fused));
            if (where.empty()) where = words_of(made_by.fused);
            MemoryPlan::Buffer& buffer =
                own_type(add(Kind::temporary, info.name, std::move(where), info.reason), info.type);
            buffer.first = life.first;
            buffer.last = life.last;
            buffer.reserved = life.bytes;
            buffer.offset = placement.offsets[b];
            buffer.kind = kind_of(life, info, once);
            if (place_ == OwnMemory::Place::gpu_separate) {
                buffer.reserved = block(buffer.bytes);
                buffer.offset = -1;
            }
            change[static_cast<std::size_t>(life.first)] += buffer.reserved;
            change[static_cast<std::size_t>(life.last) + 1] -= buffer.reserved;
        }
        std::int64_t live = 0;
        for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
            live += change[s];
            plan_.steps[s].live_bytes = live;
            if (plan_.peak_step < 0 || live > plan_.least_arena_bytes) {
                plan_.peak_step = static_cast<int>(s);
                plan_.least_arena_bytes = live;
            }
        }
        switch (place_) {
            case OwnMemory::Place::host: plan_.arena_bytes = Arena::block_bytes(placement.bytes); break;
            case OwnMemory::Place::gpu: plan_.arena_bytes = block(placement.bytes); break;
            case OwnMemory::Place::gpu_separate: plan_.arena_bytes = 0; break;
        }
    }

    int first_use(int buffer) const {
        for (std::size_t s = 0; s < steps_.size(); ++s)
            if (uses(*steps_[s], buffer)) return static_cast<int>(s);
        return 0;
    }
    static bool uses(const Step& step, int buffer) {
        const std::vector<int> buffers = buffers_of(step);
        return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
    }

    static Kind kind_of(const Lifetime& life, const BufferInfo& info, int once) {
        if (life.first < once && life.last >= once) return Kind::once;
        if (info.role == BufferInfo::Role::partial_sums) return Kind::partial_sums;
        if (info.role == BufferInfo::Role::task_rows) return Kind::task_rows;
        const bool goes_on = life.last > life.first;
        return info.role == BufferInfo::Role::saved && goes_on ? Kind::saved : Kind::temporary;
    }

    // What is not in the arena.
    void own_block(std::size_t b, std::int64_t steps) {
        const BufferInfo& info = program_->buffers[b];
        const auto with_block = [&](MemoryPlan::Buffer& buffer) { buffer.reserved = block(buffer.bytes); };
        switch (info.kind) {
            case BufferInfo::Kind::arena:
            case BufferInfo::Kind::slice: break;  // part of the workspace
            case BufferInfo::Kind::input: {
                if (on_host()) break;
                const InputInfo& input = build_.signature.inputs[static_cast<std::size_t>(info.index)];
                with_block(
                    own_type(add(Kind::argument, input.name,
                                 input.where.line ? fmt::format("input at {}", input.where.text()) : "",
                                 "a copy of the argument on the GPU"),
                             input.type));
                break;
            }
            case BufferInfo::Kind::shared: {
                const SharedState& variable = *program_->shared[static_cast<std::size_t>(info.index)];
                with_block(own_type(add(Kind::shared, variable.name, variable_words(variable),
                                        "the value of a shared variable"),
                                    info.type));
                break;
            }
            case BufferInfo::Kind::constant:
                with_block(
                    own_type(add(Kind::constant, info.name, "", "a constant of the expression"), info.type));
                break;
            case BufferInfo::Kind::output: result(info, steps); break;
            case BufferInfo::Kind::errors:
            case BufferInfo::Kind::counters: {
                MemoryPlan::Buffer& buffer =
                    own_type(add(Kind::control, info.name, "",
                                 info.kind == BufferInfo::Kind::errors ? "tells a failed check to the host"
                                                                       : "kernels count blocks in it"),
                             info.type);
                with_block(buffer);
                constexpr std::int64_t line = 128;
                if (info.kind == BufferInfo::Kind::errors) buffer.reserved = block(line);
                if (on_host()) buffer.reserved = 0;  // a member of what runs the call
                break;
            }
        }
    }

    void result(const BufferInfo& info, std::int64_t steps) {
        const std::string where = words_of(info.origins),
                          reason = steps > 0 ? "a result of all steps of a loop" : "a result of the call";
        const auto stacked = [&](MemoryPlan::Buffer& buffer) -> MemoryPlan::Buffer& {
            if (steps == 0) return buffer;
            buffer.shape.insert(buffer.shape.begin(), steps);
            buffer.formula = buffer.formula == "[]" ? fmt::format("[{}]", steps)
                                                    : fmt::format("[{}, {}", steps, buffer.formula.substr(1));
            buffer.bytes = buffer.reserved = bytes_of(buffer.dtype, buffer.shape);
            return buffer;
        };
        MemoryPlan::Buffer& host = stacked(own_type(add(Kind::result, info.name, where, reason), info.type));
        host.reserved = pooled_bytes(host.bytes);
        host.on_host = !on_host();
        if (on_host()) return;
        MemoryPlan::Buffer& one = own_type(
            add(Kind::result, info.name, where, "a result, before it is copied to the host"), info.type);
        one.reserved = block(one.bytes);
        if (steps == 0) return;
        MemoryPlan::Buffer& all = stacked(own_type(
            add(Kind::result, info.name, where, "results of a loop, before they are copied to the host"),
            info.type));
        all.reserved = block(all.bytes);
    }

    MemoryPlan finish() {
        plan_.peak_bytes = plan_.arena_bytes;
        for (const MemoryPlan::Buffer& buffer : plan_.buffers) {
            if (buffer.on_host)
                plan_.host_bytes += buffer.reserved;
            else if (buffer.offset < 0)
                plan_.peak_bytes += buffer.reserved;
        }
        std::stable_sort(plan_.buffers.begin(), plan_.buffers.end(),
                         [](const auto& a, const auto& b) { return a.reserved > b.reserved; });
        return std::move(plan_);
    }

    const Build& build_;
    const Values values_;
    const Program* program_ = nullptr;
    OwnMemory::Place place_ = OwnMemory::Place::host;
    std::vector<const Step*> steps_;
    MemoryPlan plan_;
};

}  // namespace

MemoryPlan make_memory_plan(const Build& build, const Frame& frame, std::span<const std::int64_t> symbols,
                            const OwnMemory& own, std::int64_t steps) {
    return PlanMaker(build, symbols).run(frame, own, steps);
}

MemoryPlan make_memory_plan(const Build& build, std::span<const std::int64_t> symbols) {
    return PlanMaker(build, symbols).run_without_program();
}

}  // namespace bitale
