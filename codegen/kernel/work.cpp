#include "codegen/kernel/work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Of one simple operation, scalar or in a whole vector register: two a cycle at 3 GHz. Operations' own costs
// are in cycles of an element, which a register of 16 lanes shares.
constexpr std::int64_t picoseconds = 160;
constexpr std::int64_t most = std::int64_t{1} << 40;  // a second: what takes longer is shared out anyhow

class Estimate {
  public:
    Estimate(const KernelIR& kernel, const Target& target)
        : kernel_(kernel), lanes_(std::max(1, target.vector_bytes / 4)) {}

    Int of(const Segment& segment) {
        bind(segment.task, 0);
        return bounded(of(segment.body, 1) + picoseconds);
    }

  private:
    static Int bounded(const Int& x) { return x.is_constant() ? std::min(x.constant(), most) : x; }

    // As if a variable had its first value: the first turn of a loop is a whole one.
    void bind(const Int& variable, const Int& value) {
        if (const std::uint64_t id = variable.symbol_id()) first_.insert_or_assign(id, value);
    }

    Int at_first(const Int& x) const { return x.is_constant() ? x : substitute(x, first_); }

    // Simple operations that a scalar takes, its reads of global places counting twice.
    std::int64_t operations(const Scalar& scalar) const {
        std::int64_t n = 0;
        for_each_part(scalar, [&](const ScalarNode& s) { n += operations(s); });
        return n;
    }

    std::int64_t operations(const ScalarNode& s) const {
        const auto guards = static_cast<std::int64_t>(s.guards.size());
        switch (s.kind) {
            case ScalarNode::Kind::constant:
            case ScalarNode::Kind::index: break;
            case ScalarNode::Kind::read: return (is_global(s.operand.place()) ? 2 : 1) + guards;
            case ScalarNode::Kind::apply: return s.op->map->cost;
            case ScalarNode::Kind::cast: return 1;
            case ScalarNode::Kind::select: return 1 + guards;
        }
        return 0;
    }

    bool is_global(int place) const {
        return kernel_.places[static_cast<std::size_t>(place)].scope == Place::Scope::global;
    }

    std::int64_t registers_of(int vector) const {
        return kernel_.places[static_cast<std::size_t>(vector)].extents[0].constant();
    }

    static bool has_check(const Stmts& body) {
        return std::any_of(body.begin(), body.end(),
                           [](const Stmt& s) { return s.kind == Stmt::Kind::check || has_check(s.body); });
    }

    // `lanes`: how many turns of the loops around it one vector operation does.
    Int of(const Stmts& body, std::int64_t lanes) {
        std::int64_t plain = 0;
        Int nested = 0;
        for (const Stmt& s : body) {
            switch (s.kind) {
                case Stmt::Kind::loop: nested = bounded(nested + of_loop(s, lanes)); break;
                case Stmt::Kind::when:  // which element is outside is asked where a call fails
                    if (!has_check(s.body)) nested = bounded(nested + of(s.body, lanes));
                    break;
                case Stmt::Kind::set: plain += operations(s.value) + (is_global(s.place) ? 2 : 1); break;
                case Stmt::Kind::accumulate: plain += operations(s.value) + (s.fused ? 0 : 1); break;
                case Stmt::Kind::let:
                    plain += operations(s.value) + 2;
                    bind(s.variable, 0);
                    break;
                case Stmt::Kind::call: nested = bounded(nested + of_call(s.call) * picoseconds); break;
                case Stmt::Kind::search: {
                    constexpr std::int64_t operations = 30;
                    plain += operations;
                    bind(s.variable, at_first(s.begin + s.high));
                    break;
                }
                case Stmt::Kind::check: plain += operations(s.value) + 2; break;
                case Stmt::Kind::declare:
                case Stmt::Kind::exchange:
                case Stmt::Kind::barrier:
                case Stmt::Kind::comment: break;
            }
        }
        return bounded(nested + plain * picoseconds);
    }

    Int of_call(const Call& c) const {
        std::vector<Int> numbers;
        for (const Int& x : c.numbers) numbers.push_back(at_first(x));
        Intrinsic::Amounts amounts{numbers, c.constants, 1, lanes_};
        for_each_operand(c, [&](const Intrinsic::Operand& operand, const Memory& memory) {
            if (operand.kind == Intrinsic::Operand::Kind::registers && operand.use == Use::read)
                amounts.registers = registers_of(memory.place);
        });
        return c.intrinsic->operations(amounts);
    }

    // Every statement of a tile runs on a whole register, and what several of them read is read once.
    std::int64_t of_registers(const Stmts& body) const {
        std::map<std::pair<int, std::vector<Int>>, std::int64_t> reads;
        std::int64_t n = 0;
        for (const Stmt& s : body) {
            n += s.fused ? 0 : 1;
            for_each_part(s.value, [&](const ScalarNode& part) {
                if (part.kind == ScalarNode::Kind::read && part.guards.empty())
                    reads.emplace(std::pair(part.operand.place(), part.at),
                                  is_global(part.operand.place()) ? 2 : 1);
                else
                    n += operations(part);
            });
        }
        for (const auto& [read, cost] : reads) n += cost;
        return n;
    }

    Int of_loop(const Stmt& s, std::int64_t lanes) {
        if (s.binding == Binding::lanes)
            return ceildiv(s.number, lanes_) * (of_registers(s.body) * picoseconds);
        const Int begin = at_first(s.begin), length = at_first(s.end) - begin;
        bind(s.variable, begin);
        Int turns = s.step == 1 ? length : ceildiv(length, s.step);
        if (!turns.non_negative()) turns = max(turns, 0);
        // A register of lanes does as many turns at once; what is left over takes one more operation.
        const bool vector = s.binding == Binding::simd && s.step == 1 && lanes == 1;
        if (vector) turns = ceildiv(turns, lanes_);
        return bounded(bounded(turns) * of(s.body, vector ? lanes_ : lanes));
    }

    const KernelIR& kernel_;
    const std::int64_t lanes_;
    Substitution first_;
};

}  // namespace

Int work_of(const KernelIR& kernel, const Segment& segment, const Target& target) {
    return Estimate(kernel, target).of(segment);
}

}  // namespace bitale
