#include "codegen/kernel/ranges.h"

#include <utility>

#include "codegen/kernel/intrinsics.h"

namespace bitale {

namespace {

Stmts checked(Stmts body) {
    Stmts r;
    for (Stmt& s : body) {
        const bool whole = s.binding == Binding::lanes || s.binding == Binding::turned;
        if (s.kind == Stmt::Kind::loop && !whole) {
            Stmts inner;
            if (s.variable.symbol_id()) inner.push_back(check_range(s.variable));
            append(inner, checked(std::move(s.body)));
            s.body = std::move(inner);
        } else if (s.kind == Stmt::Kind::when) {
            s.body = checked(std::move(s.body));
        }
        const bool declares = s.kind == Stmt::Kind::let || s.kind == Stmt::Kind::search;
        const Int variable = s.variable;
        r.push_back(std::move(s));
        if (declares) r.push_back(check_range(variable));
    }
    return r;
}

}  // namespace

void check_ranges(KernelIR& kernel) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) {
            Stmts body;
            if (segment.task.symbol_id()) body.push_back(check_range(segment.task));
            append(body, checked(std::move(segment.body)));
            segment.body = std::move(body);
        }
}

}  // namespace bitale
