// Which places a statement uses, and how.
#pragma once

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/walk.h"

namespace bitale {

// f(place, use) for each use of a place by the statement itself; statements of its body are not walked.
template <class F>
void for_each_place(const Stmt& s, F&& f) {
    const auto reads = [&](const Scalar& value) {
        if (value)
            for_each_read(value, [&](const ScalarNode& read) {
                if (read.operand.is_place()) f(read.operand.place(), Use::read);
            });
    };
    reads(s.value);
    reads(s.position);
    for (const Scalar& value : s.call.values) reads(value);
    switch (s.kind) {
        case Stmt::Kind::set: f(s.place, Use::written); return;
        case Stmt::Kind::accumulate:
            f(s.place, Use::both);
            if (is_position(s.combine) && s.number >= 0) f(s.number, Use::both);
            return;
        case Stmt::Kind::exchange: f(s.place, Use::both); return;
        case Stmt::Kind::call:
            for_each_operand(s.call, [&](const Intrinsic::Operand& operand, const Memory& memory) {
                if (operand.use != Use::none) f(memory.place, operand.use);
            });
            return;
        case Stmt::Kind::search: f(s.place, Use::read); return;
        case Stmt::Kind::declare:
        case Stmt::Kind::loop:
        case Stmt::Kind::let:
        case Stmt::Kind::check:
        case Stmt::Kind::when:
        case Stmt::Kind::barrier:
        case Stmt::Kind::comment: return;
    }
}

}  // namespace bitale
