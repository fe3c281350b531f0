#include "codegen/kernel/in_flight.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// More operations, eight times over, need more registers than a thread of a full block has.
constexpr int most_operations = 8, unrolled = 8;

struct Body {
    int operations = 0;
    bool reads = false, fits = true;
};

void look_at(const Stmts& statements, const std::vector<Place>& places, Body& body) {
    for (const Stmt& s : statements) {
        switch (s.kind) {
            case Stmt::Kind::set:
            case Stmt::Kind::accumulate:
            case Stmt::Kind::let:
                for_each_part(s.value, [&](const ScalarNode& part) {
                    if (part.kind == ScalarNode::Kind::apply) body.operations += part.op->map->cost;
                    if (part.kind != ScalarNode::Kind::read) return;
                    ++body.operations;
                    const Place& from = places[static_cast<std::size_t>(part.operand.place())];
                    body.reads = body.reads || from.scope == Place::Scope::global;
                });
                break;
            case Stmt::Kind::when: look_at(s.body, places, body); break;
            case Stmt::Kind::declare:
            case Stmt::Kind::comment: break;
            default: body.fits = false;
        }
    }
}

}  // namespace

int turns_in_flight(const Stmt& loop, const std::vector<Place>& places) {
    if (loop.kind != Stmt::Kind::loop || loop.binding != Binding::serial) return 1;
    Body body;
    look_at(loop.body, places, body);
    return body.reads && body.fits && body.operations <= most_operations ? unrolled : 1;
}

}  // namespace bitale
