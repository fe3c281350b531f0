#include "codegen/kernel/in_flight.h"

#include <algorithm>
#include <cstdint>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Each load from global memory takes a register until it is used, of the 255 that a thread has; operations
// are for the size of the text.
constexpr std::int64_t most_loads = 64, most_operations = 384, most_turns = 8, most_turns_of_shared = 16;

struct Body {
    std::int64_t operations = 0, loads = 0;
    bool reads_shared = false, fits = true;
};

void look_at(const Stmts& statements, const std::vector<Place>& places, std::int64_t times, Body& body) {
    for (const Stmt& s : statements) {
        switch (s.kind) {
            case Stmt::Kind::set:
            case Stmt::Kind::accumulate:
            case Stmt::Kind::let:
                for_each_part(s.value, [&](const ScalarNode& part) {
                    if (part.kind == ScalarNode::Kind::apply) body.operations += times * part.op->map->cost;
                    if (part.kind != ScalarNode::Kind::read) return;
                    body.operations += times;
                    const Place& from = places[static_cast<std::size_t>(part.operand.place())];
                    if (from.scope == Place::Scope::global) body.loads += times;
                    body.reads_shared = body.reads_shared || from.scope == Place::Scope::local;
                });
                break;
            case Stmt::Kind::when: look_at(s.body, places, times, body); break;
            case Stmt::Kind::declare:
            case Stmt::Kind::comment: break;
            case Stmt::Kind::loop: {
                const Int turns = s.end - s.begin;
                const bool is_unrolled = s.binding == Binding::unrolled && turns.is_constant() && s.step == 1;
                body.fits = body.fits && is_unrolled;
                if (is_unrolled) look_at(s.body, places, times * turns.constant(), body);
                break;
            }
            default: body.fits = false;
        }
    }
}

// How many turns a thread surely takes; of an unknown length, as many as there can be. What an unrolled loop
// leaves over is done turn by turn.
std::int64_t turns_of(const Stmt& loop, int threads) {
    const IntRange length = (loop.end - loop.begin).range();
    const std::int64_t points = length.low > 0 ? length.low : length.high;
    return loop.binding == Binding::threads ? points / std::max(threads, 1) : (points - 1) / loop.step + 1;
}

}  // namespace

LoadsInFlight loads_in_flight(const Stmt& loop, const std::vector<Place>& places, int threads) {
    if (loop.kind != Stmt::Kind::loop ||
        (loop.binding != Binding::serial && loop.binding != Binding::threads))
        return {};
    Body body;
    look_at(loop.body, places, 1, body);
    const bool waits = body.loads > 0 || (body.reads_shared && loop.binding == Binding::serial);
    if (!waits || !body.fits) return {};
    const std::int64_t fitting =
        std::min({most_loads / std::max<std::int64_t>(body.loads, 1),
                  most_operations / std::max<std::int64_t>(body.operations, 1), turns_of(loop, threads)});
    const std::int64_t most = body.loads == 0 ? most_turns_of_shared : most_turns;
    const int turns = static_cast<int>(std::clamp<std::int64_t>(fitting, 1, most));
    return {turns, static_cast<int>(std::min(turns * body.loads, most_loads))};
}

}  // namespace bitale
