// Which places a statement uses, and how.
#pragma once

#include "codegen/kernel/ir.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/walk.h"

namespace bitale {

enum class Use : std::uint8_t { read, written, both };

// f(place, use) for each use of a place by the statement itself; statements of its body are not walked.
template <class F>
void for_each_place(const Stmt& s, F&& f) {
    for (const Scalar& value : {s.value, s.position})
        if (value)
            for_each_read(value, [&](const ScalarNode& read) {
                if (read.operand.is_place()) f(read.operand.place(), Use::read);
            });
    switch (s.kind) {
        case Stmt::Kind::set:
        case Stmt::Kind::nonzeros:
        case Stmt::Kind::apart:
        case Stmt::Kind::together: f(s.place, Use::written); return;
        case Stmt::Kind::accumulate:
            f(s.place, Use::both);
            if (is_position(s.combine) && s.number >= 0) f(s.number, Use::both);
            return;
        case Stmt::Kind::exchange: f(s.place, Use::both); return;
        case Stmt::Kind::draw:  // of words that nobody wants there is no place
            if (s.place >= 0) f(s.place, Use::written);
            if (s.number >= 0) f(s.number, Use::written);
            return;
        case Stmt::Kind::sort:
            f(s.place, Use::written);
            f(s.number, Use::written);
            return;
        case Stmt::Kind::search: f(s.place, Use::read); return;
        case Stmt::Kind::fetch:
        case Stmt::Kind::total:
        case Stmt::Kind::best:
        case Stmt::Kind::put:
        case Stmt::Kind::leave:
            f(s.number, Use::read);
            f(s.place, Use::written);
            return;
        case Stmt::Kind::ask:
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
