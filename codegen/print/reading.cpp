// An axis is told by the first access in a loop whose index moves with the variable: a store, else a load.
#include "codegen/print/reading.h"

#include <utility>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"
#include "codegen/print/writer.h"
#include "graph/types/shape.h"

namespace bitale {

namespace {

class Reader {
  public:
    Reader(const KernelIR& kernel, ReadingNotes& reading) : kernel_(kernel), reading_(reading) {}

    void segment(const Segment& s) {
        value_ = s.title;
        stores_ = true;
        body(s.body);
        stores_ = false;
        body(s.body);
        if (const std::uint64_t task = s.task.symbol_id())
            reading_.loops[task] = "over " + s.tasks.text() + " tasks";
    }

  private:
    struct Loop {
        std::uint64_t variable;
        Int begin, end;
    };

    void body(const Stmts& list) {
        for (const Stmt& s : list) statement(s);
    }

    void statement(const Stmt& s) {
        if (s.kind == Stmt::Kind::comment) value_ = s.text;
        const std::uint64_t variable = s.kind == Stmt::Kind::loop ? s.variable.symbol_id() : 0;
        if (variable) loops_.push_back({variable, s.begin, s.end});
        if (stores_ && s.place >= 0 && s.kind != Stmt::Kind::declare) access(s.place, s.at);
        if (s.place >= 0 && s.kind != Stmt::Kind::declare) name_scratch(s.place);
        if (!stores_ && s.value)
            for_each_read(s.value, [&](const ScalarNode& read) { access(read.operand.place(), read.at); });
        for_each_operand(s.call, [&](const Intrinsic::Operand& operand, const Memory& memory) {
            const bool written = operand.use == Use::written || operand.use == Use::both;
            if (stores_ == written && !memory.at.empty()) access(memory.place, memory.at);
            if (written) name_scratch(memory.place);
        });
        body(s.body);
        if (variable) loops_.pop_back();
    }

    // What scratch is for is what is computed where it is written first.
    void name_scratch(int place) {
        std::string& name = reading_.places[static_cast<std::size_t>(place)];
        const Place& p = kernel_.places[static_cast<std::size_t>(place)];
        if (name.empty() && p.scope != Place::Scope::global && !p.extents.empty())
            name = (p.scope == Place::Scope::local ? "scratch of a task, " : "of a thread, ") + value_ +
                   ", " + std::string(name_of(p.dtype)) + " " + text_of(p.extents);
    }

    void access(int place, const std::vector<Int>& at) {
        if (kernel_.places[static_cast<std::size_t>(place)].scope > Place::Scope::local) return;
        for (const Loop& loop : loops_) {
            if (reading_.loops.contains(loop.variable)) continue;
            const std::string axes = axes_of(loop, at, kernel_.places[static_cast<std::size_t>(place)]);
            if (!axes.empty())
                reading_.loops[loop.variable] = "over " + axes + " of p" + std::to_string(place);
        }
    }

    // The axes whose index moves with the loop. One that runs past the end of its axis goes on in the axes
    // inside it, which lie behind it in memory.
    static std::string axes_of(const Loop& loop, const std::vector<Int>& at, const Place& place) {
        std::vector<std::size_t> axes;
        for (std::size_t d = 0; d < at.size(); ++d)
            if (depends_on(at[d], loop.variable)) axes.push_back(d);
        if (axes.empty()) return "";
        const std::size_t first = axes[0];
        std::size_t last = axes.back();
        Int room = place.extents[first];
        const Int steps = loop.end - loop.begin;
        while (axes.size() == 1 && last + 1 < place.extents.size() && room.is_constant() &&
               steps.is_constant() && steps.constant() > room.constant())
            room = room * place.extents[++last];
        if (last == first) return "axis " + std::to_string(first);
        return "axes " + std::to_string(first) + (last == first + 1 ? " and " : " to ") +
               std::to_string(last);
    }

    const KernelIR& kernel_;
    ReadingNotes& reading_;
    std::vector<Loop> loops_;
    std::string value_;
    bool stores_ = true;
};

}  // namespace

void note_place(const ReadingNotes* notes, std::size_t place, Writer& to) {
    if (notes && !notes->places[place].empty())
        to.comment("p" + std::to_string(place) + ": " + notes->places[place]);
}

void note_loop(const ReadingNotes* notes, const Int& variable, Writer& to) {
    if (!notes) return;
    if (const auto at = notes->loops.find(variable.symbol_id()); at != notes->loops.end())
        to.comment(at->second);
}

ReadingNotes notes_for_reading(const KernelIR& kernel, const std::vector<std::string>& buffers) {
    ReadingNotes reading;
    for (const Place& p : kernel.places)
        reading.places.push_back(p.scope == Place::Scope::global && p.buffer >= 0
                                     ? buffers[static_cast<std::size_t>(p.buffer)]
                                     : std::string());
    Reader reader(kernel, reading);
    for (const Phase& phase : kernel.phases)
        for (const Segment& segment : phase.segments) reader.segment(segment);
    return reading;
}

}  // namespace bitale
