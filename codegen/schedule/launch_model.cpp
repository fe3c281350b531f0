#include "codegen/schedule/launch_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/kernel/in_flight.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/kernel/shared_memory.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

constexpr std::int64_t warp = 32;
constexpr std::int64_t sector = 32, line = 128, bank = 4, banks = 32;  // bytes, bytes, bytes, number
constexpr double l1_sectors = 4;                                       // a cycle
// Turns of a loop that the compiler has in flight where nothing is said.
constexpr int usual_turns = 4;
// Of a thread, with many loads in flight and with few.
constexpr double usual_registers = 64, few_registers = 32, few_loads = 4;
// Instructions for the address of an element, and for the counter and the branch of a loop.
constexpr double of_address = 2, of_turn = 2, of_guard = 2;

// A stretch of code: of one thread, and what all threads of the block have in it.
struct Cost {
    double cycles = 0;              // of the slowest thread
    double waits = 0;               // of these, for loads
    double loads = 0;               // one after another
    double issue = 0;               // instructions of warps
    double sectors = 0;             // of global memory
    double conflicts = 0;           // turns of the banks of shared memory
    double busy = 0, within = 0;    // threads x cycles, and cycles, inside of loops over threads
    bool waits_for_others = false;  // a barrier

    void add(const Cost& c, double times, double rounds) {
        cycles += rounds * c.cycles;
        waits += rounds * c.waits;
        loads += rounds * c.loads;
        issue += times * c.issue;
        sectors += times * c.sectors;
        conflicts += times * c.conflicts;
        busy += times * c.busy;
        within += rounds * c.within;
        waits_for_others = waits_for_others || c.waits_for_others;
    }
};

class Model {
  public:
    Model(const KernelIR& kernel, const Phase& phase, const GpuFacts& gpu,
          const std::set<std::uint64_t>& numbers)
        : kernel_(kernel), phase_(phase), gpu_(gpu), threads_(threads_of(phase)) {
        for (const std::uint64_t number : numbers) values_[number] = 0;
    }

    PredictedLaunch run() {
        PredictedLaunch p;
        p.threads = static_cast<double>(threads_);
        std::vector<std::pair<double, double>> chains;  // blocks, and cycles of one
        double issue = 0, sectors = 0, conflicts = 0, busy = 0, within = 0, shared = 0;
        for (const Segment& segment : phase_.segments) {
            bind(segment.task, 0);
            active_ = threads_;
            const double tasks = std::max(1.0, number(segment.tasks));
            times_ = tasks_ = tasks;
            const Cost c = of(segment.body);
            p.blocks += tasks;
            p.loads = std::max(p.loads, c.loads);
            chains.emplace_back(tasks, c.cycles);
            issue += tasks * c.issue / (gpu_.lanes / static_cast<double>(warp));
            sectors += tasks * c.sectors;
            conflicts += tasks * c.conflicts;
            busy += c.busy;
            within += c.within;
            shared = std::max(shared, static_cast<double>(shared_memory_of(kernel_, segment).bytes));
        }
        p.working = within > 0 ? std::min(p.threads, busy / within) : 1;
        const double at_once = blocks_at_once(gpu_, p.threads, shared,
                                              most_loads_ > few_loads ? usual_registers : few_registers);
        const double units = std::min<double>(gpu_.multiprocessors, p.blocks);
        p.waves = std::ceil(p.blocks / at_once);
        // Blocks of one kind run in waves; those of several kinds take what room there is.
        double chain = 0, all = 0;
        for (const auto& [blocks, cycles] : chains) {
            chain = std::max(chain, cycles * std::ceil(blocks / at_once));
            all += cycles * blocks / at_once;
        }
        chain = std::max(chain, all);
        p.sectors = most_sectors_;
        // Banks deliver a word each a cycle, the L1 four sectors.
        const double instructions = std::max({issue, conflicts, sectors / l1_sectors}) / units;
        const double memory = std::max(l2_sectors_ * sector / (units * gpu_.l2_rate / gpu_.multiprocessors),
                                       bytes_of_dram() / gpu_.dram_rate);
        const double most = std::max({chain, instructions, memory});
        p.microseconds = gpu_.launch + most / (1e3 * gpu_.clock);
        p.bound = most / (1e3 * gpu_.clock) < gpu_.launch ? PredictedLaunch::Bound::launch
                  : most == chain                         ? PredictedLaunch::Bound::chain
                  : most == instructions                  ? PredictedLaunch::Bound::issue
                                                          : PredictedLaunch::Bound::memory;
        return p;
    }

  private:
    // ---- numbers

    void bind(const Int& variable, std::int64_t value) {
        if (const std::uint64_t id = variable.symbol_id()) values_[id] = value;
    }

    double number(const Int& x) { return static_cast<double>(at(x)); }

    std::int64_t at(const Int& x) {
        if (x.is_constant()) return x.constant();
        for (const AtomPtr& symbol : symbols_of(x))
            if (!values_.contains(symbol->id))
                values_[symbol->id] = static_cast<std::int64_t>(typical(Int::from(symbol)));
        return evaluate(x, values_);
    }

    // ---- memory

    const Place& place(int p) const { return kernel_.places[static_cast<std::size_t>(p)]; }

    double bytes_of_place(const Place& p) {
        double bytes = bytes_of(p.dtype);
        for (const Int& n : p.extents) bytes *= number(n);
        return bytes;
    }

    bool exceeds_l2(const Place& p) { return 2 * bytes_of_place(p) > static_cast<double>(gpu_.l2_bytes); }

    // Of places that do not stay in the L2, what is touched.
    double bytes_of_dram() {
        double bytes = 0;
        for (const auto& [p, sectors] : touched_)
            if (exceeds_l2(place(p))) bytes += std::min(bytes_of_place(place(p)), sectors * sector);
        return bytes;
    }

    // The addresses of a warp's threads, in bytes.
    std::vector<std::int64_t> addresses(const Place& p, const std::vector<Int>& index) {
        const Int offset = offset_of(p, index);
        std::vector<std::int64_t> all;
        if (point_ == 0 || !depends_on(offset, point_)) {
            all.push_back(at(offset) * bytes_of(p.dtype));
            return all;
        }
        const std::int64_t before = values_[point_];
        for (std::int64_t lane = 0; lane < std::min(warp, active_); ++lane) {
            values_[point_] = before + lane;
            all.push_back(at(offset) * bytes_of(p.dtype));
        }
        values_[point_] = before;
        return all;
    }

    // Of the sectors that an access of a block asks for, those that are not in the L1 yet: no more than lie
    // between the ends of what it touches, if that fits. The ends are those of a few turns of the loops.
    double missed_sectors(const Place& p, const std::vector<Int>& index, double of_warp) {
        constexpr double l1_bytes = 128 << 10;
        constexpr int samples = 10;
        const double asked = times_ / tasks_ * warps() * of_warp;
        if (asked <= 2 * of_warp) return asked;
        const Int offset = offset_of(p, index);
        const auto before = values_;
        std::int64_t low = INT64_MAX, high = INT64_MIN;
        std::uint32_t random = 1;
        for (int s = 0; s < samples; ++s) {
            for (const Turns& l : loops_) {
                random = random * 1664525U + 1013904223U;
                const double part = s == 0 ? 0 : s == 1 ? 1 : (random >> 8) / double{1 << 24};
                values_[l.variable] =
                    l.first + l.step * static_cast<std::int64_t>(part * std::max(0.0, l.turns - 1));
            }
            low = std::min(low, at(offset));
            high = std::max(high, at(offset));
        }
        values_ = before;
        const double bytes = static_cast<double>((high - low + 1) * bytes_of(p.dtype));
        return bytes <= l1_bytes ? std::min(asked, bytes / sector + 1) : asked;
    }

    // One access of all warps; its latency.
    double access(int p, const std::vector<Int>& index, std::int64_t bytes, Cost& c) {
        const Place& where = place(p);
        if (where.scope != Place::Scope::global && where.scope != Place::Scope::local) return 0;
        const std::vector<std::int64_t> all = addresses(where, index);
        if (where.scope == Place::Scope::global) {
            std::set<std::int64_t> sectors;
            for (const std::int64_t a : all)
                for (std::int64_t byte = 0; byte < bytes; byte += sector) sectors.insert((a + byte) / sector);
            for (const std::int64_t a : all) sectors.insert((a + bytes - 1) / sector);
            const double missed = tasks_ * missed_sectors(where, index, static_cast<double>(sectors.size()));
            touched_[p] += missed;
            l2_sectors_ += missed;
            most_sectors_ = std::max(most_sectors_, static_cast<double>(sectors.size()));
            // The L1 looks up one line a cycle.
            std::set<std::int64_t> lines;
            for (const std::int64_t s : sectors) lines.insert(s * sector / line);
            c.sectors += warps() * std::max(static_cast<double>(sectors.size()),
                                            l1_sectors * static_cast<double>(lines.size()));
            c.issue += warps() * (1 + of_address);
            return exceeds_l2(where) ? gpu_.dram : gpu_.l2;
        }
        std::map<std::int64_t, std::set<std::int64_t>> words;  // of each bank
        std::size_t turns = 1;
        for (const std::int64_t a : all) {
            std::set<std::int64_t>& own = words[a / bank % banks];
            own.insert(a / bank);
            turns = std::max(turns, own.size());
        }
        c.conflicts += warps() * static_cast<double>(turns);
        c.issue += warps() * (1 + of_address);
        return gpu_.shared;
    }

    double warps() const { return std::ceil(static_cast<double>(active_) / warp); }

    // ---- scalars

    // Operations of a scalar, its loads once each; the latency of these.
    double scalar(const Scalar& s, Cost& c) {
        double latency = 0, operations = 0;
        if (!s) return 0;
        for_each_part(s, [&](const ScalarNode& part) {
            operations += of_guard * static_cast<double>(part.guards.size());
            if (part.kind == ScalarNode::Kind::apply) operations += part.op->map->cost;
            if (part.kind == ScalarNode::Kind::cast) operations += 1;
            if (part.kind != ScalarNode::Kind::read) return;
            if (loaded_.emplace(part.operand.place(), part.at).second)
                latency = std::max(latency, access(part.operand.place(), part.at, bytes_of(part.dtype), c));
        });
        c.cycles += operations;
        c.issue += warps() * operations;
        return latency;
    }

    // ---- statements

    Cost of(const Stmts& body) {
        Cost c;
        double latency = 0;  // of loads that are in flight together
        const auto wait = [&] {
            c.cycles += latency;
            c.waits += latency;
            c.loads += latency >= gpu_.l2 ? 1 : 0;
            latency = 0;
            loaded_.clear();
        };
        const auto store = [&](const Stmt& s) {
            access(s.place, s.at, bytes_of(place(s.place).dtype), c);
            c.cycles += 1;
        };
        for (const Stmt& s : body) {
            switch (s.kind) {
                case Stmt::Kind::loop: {
                    wait();
                    of_loop(s, c);
                    break;
                }
                case Stmt::Kind::when: {
                    wait();
                    const double guards = of_guard * static_cast<double>(s.guards.size());
                    c.cycles += guards;
                    c.issue += warps() * guards;
                    c.add(of(s.body), 1, 1);
                    break;
                }
                case Stmt::Kind::set:
                    latency = std::max(latency, scalar(s.value, c));
                    store(s);
                    break;
                case Stmt::Kind::accumulate:
                    latency = std::max(latency, scalar(s.value, c));
                    if (place(s.place).scope == Place::Scope::global ||
                        place(s.place).scope == Place::Scope::local)
                        latency = std::max(latency, access(s.place, s.at, bytes_of(place(s.place).dtype), c));
                    c.cycles += 1;
                    c.issue += warps();
                    break;
                case Stmt::Kind::let:
                    latency = std::max(latency, scalar(s.value, c));
                    wait();
                    bind(s.variable, 0);
                    break;
                case Stmt::Kind::check: latency = std::max(latency, scalar(s.value, c)); break;
                case Stmt::Kind::exchange:
                    wait();
                    c.cycles += gpu_.shuffle + gpu_.add;
                    c.issue += (s.number >= 0 ? 8 : 2) * warps();
                    break;
                case Stmt::Kind::call: latency = std::max(latency, of_call(s, c)); break;
                case Stmt::Kind::search: {
                    wait();
                    const double steps = std::ceil(std::log2(std::max(2.0, number(s.end - s.begin))));
                    c.cycles += steps * gpu_.l2;
                    c.waits += steps * gpu_.l2;
                    c.loads += steps;
                    c.issue += steps * 8 * warps();
                    bind(s.variable, at(s.begin));
                    break;
                }
                case Stmt::Kind::barrier:
                    wait();
                    c.cycles += gpu_.barrier;
                    c.issue += warps();
                    c.waits_for_others = true;
                    break;
                case Stmt::Kind::declare:
                case Stmt::Kind::comment: break;
            }
        }
        wait();
        return c;
    }

    double of_call(const Stmt& s, Cost& c) {
        std::vector<Int> numbers;
        for (const Int& x : s.call.numbers) numbers.emplace_back(at(x));
        const Intrinsic::Amounts amounts{numbers, s.call.constants, 1, 1};
        const double operations = number(s.call.intrinsic->operations(amounts));
        c.cycles += operations;
        c.issue += warps() * operations;
        double latency = 0;
        for_each_operand(s.call, [&](const Intrinsic::Operand& operand, const Memory& memory) {
            if (operand.kind != Intrinsic::Operand::Kind::memory) return;
            std::int64_t elements = 1;
            if (operand.count == Intrinsic::Operand::as_vector)
                for (const Memory& other : s.call.operands)
                    if (place(other.place).scope == Place::Scope::vector)
                        elements = at(count_of(place(other.place).extents));
            const double own =
                access(memory.place, memory.at, elements * bytes_of(place(memory.place).dtype), c);
            if (operand.use != Use::written) latency = std::max(latency, own);
        });
        return latency;
    }

    int turns_in_flight(const Stmt& loop) {
        const LoadsInFlight all = loads_in_flight(loop, kernel_.places, static_cast<int>(threads_));
        most_loads_ = std::max(most_loads_, static_cast<double>(all.loads));
        return all.turns;
    }

    void of_loop(const Stmt& s, Cost& to) {
        const double turns = std::max(0.0, std::ceil(number(s.end - s.begin) / static_cast<double>(s.step)));
        bind(s.variable, at(s.begin));
        if (s.binding == Binding::threads) return of_threads(s, turns, to);
        const double before = times_;
        times_ *= turns;
        loops_.push_back({s.variable.symbol_id(), at(s.begin), s.step, turns});
        Cost c = of(s.body);
        loops_.pop_back();
        times_ = before;
        const bool unrolled = s.binding == Binding::unrolled;
        const double in_flight = std::max(usual_turns, turns_in_flight(s));
        if (!unrolled) {
            c.cycles += of_turn / in_flight;
            c.issue += warps() * of_turn / in_flight;
            c.cycles = std::max(c.cycles, c.waits + gpu_.add);  // sums are added in order
        }
        // Loads of several turns are in flight together, unless a barrier is between them.
        const double together = c.waits_for_others ? 1 : unrolled ? std::max(1.0, turns) : in_flight;
        const double rounds = std::ceil(turns / together);
        const double waits = c.waits, loads = c.loads;
        c.cycles -= waits;
        c.waits = c.loads = 0;
        to.add(c, turns, turns);
        to.cycles += rounds * waits;
        to.waits += rounds * waits;
        to.loads += rounds * loads;
    }

    void of_threads(const Stmt& s, double points, Cost& to) {
        if (points <= 0) return;
        const std::int64_t before = active_;
        const std::uint64_t outer = point_;
        const double times = times_;
        point_ = s.variable.symbol_id();
        active_ = std::min<std::int64_t>(threads_, static_cast<std::int64_t>(points));
        const double turns = points / static_cast<double>(active_);
        times_ *= turns;
        loops_.push_back({point_, at(s.begin), 1, points});
        Cost c = of(s.body);
        loops_.pop_back();
        c.busy = c.cycles * static_cast<double>(active_);
        c.within = c.cycles;
        const double rounds = std::ceil(points / static_cast<double>(threads_));
        const double waits = c.waits, loads = c.loads;
        c.cycles -= waits;
        c.waits = c.loads = 0;
        to.add(c, turns, rounds);
        const double together = c.waits_for_others ? 1 : turns_in_flight(s);
        to.cycles += std::ceil(rounds / together) * waits;
        to.waits += std::ceil(rounds / together) * waits;
        to.loads += std::ceil(rounds / together) * loads;
        times_ = times;
        active_ = before;
        point_ = outer;
    }

    const KernelIR& kernel_;
    const Phase& phase_;
    const GpuFacts& gpu_;
    const std::int64_t threads_;
    std::int64_t active_ = 1;  // threads that run what is looked at
    std::uint64_t point_ = 0;  // the variable that differs between them
    std::map<std::uint64_t, std::int64_t> values_;
    std::set<std::pair<int, std::vector<Int>>> loaded_;
    struct Turns {
        std::uint64_t variable;
        std::int64_t first, step;
        double turns;
    };
    std::vector<Turns> loops_;      // around what is looked at
    double tasks_ = 1, times_ = 1;  // of the segment; how often the launch runs what is looked at
    double l2_sectors_ = 0;
    std::map<int, double> touched_;  // sectors of global places
    double most_sectors_ = 0, most_loads_ = 0;
};

}  // namespace

PredictedLaunch predict_launch(const KernelIR& kernel, const Phase& phase, const GpuFacts& gpu,
                               const std::set<std::uint64_t>& numbers) {
    return Model(kernel, phase, gpu, numbers).run();
}

std::set<std::uint64_t> numbers_of(const Graph& graph) {
    std::set<std::uint64_t> numbers;
    for (const NodePtr& input : graph.inputs)
        if (const Attribute* symbol = input->attributes.find("symbol"))
            numbers.insert(std::get<Int>(*symbol).symbol_id());
    return numbers;
}

}  // namespace bitale
