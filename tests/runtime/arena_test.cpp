// Placement of many buffers: no two that live at once overlap, and little is wasted.
#include <ctime>
#include <iostream>
#include <iterator>
#include <map>
#include <random>

#include "codegen/program.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

struct Life {
    int first, last;
    std::int64_t floats;
};

Program program_with(const std::vector<Life>& lives) {
    int steps = 0;
    for (const Life& life : lives) steps = std::max(steps, life.last + 1);
    Program program;
    program.body.steps.resize(static_cast<std::size_t>(steps));
    for (const Life& life : lives) {
        const int b = static_cast<int>(program.buffers.size());
        program.buffers.push_back(
            {BufferInfo::Kind::arena, 0, "b", {DType::float32, {life.floats}}, "a test", {}});
        const auto use = [&](int step) {
            std::get<KernelStep>(program.body.steps[static_cast<std::size_t>(step)].operation)
                .launch.buffers.push_back(b);
        };
        use(life.first);
        if (life.last != life.first) use(life.last);
    }
    return program;
}

// Step by step, with what lives by its offset.
void check_apart(const Program& program, const Placement& placement) {
    const std::vector<Lifetime> lives = arena_lifetimes(program, {});
    std::vector<std::vector<const Lifetime*>> begins(program.body.steps.size()), ends = begins;
    for (const Lifetime& life : lives) {
        begins[static_cast<std::size_t>(life.first)].push_back(&life);
        ends[static_cast<std::size_t>(life.last)].push_back(&life);
    }
    const auto offset = [&](const Lifetime& life) {
        return placement.offsets.at(static_cast<std::size_t>(life.buffer));
    };
    std::map<std::int64_t, std::int64_t> alive;  // begin, end
    std::size_t wrong = 0;
    for (std::size_t s = 0; s < begins.size(); ++s) {
        for (const Lifetime* life : begins[s]) {
            const std::int64_t begin = offset(*life), end = begin + life->bytes;
            wrong += begin < 0 || begin % 64 != 0 || end > placement.bytes;
            const auto after = alive.lower_bound(begin);
            wrong += after != alive.end() && after->first < end;
            wrong += after != alive.begin() && std::prev(after)->second > begin;
            alive.emplace(begin, end);
        }
        for (const Lifetime* life : ends[s]) alive.erase(offset(*life));
    }
    CHECK(wrong == 0);
}

Placement checked(const std::vector<Life>& lives, double most) {
    const Program program = program_with(lives);
    const std::clock_t start = std::clock();  // of the processor: other programs do not count
    Placement placement = plan_arena(program, {});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    INFO(lives.size() << " buffers in " << seconds << " s: " << placement.bytes << " of "
                      << placement.least_bytes);
    check_apart(program, placement);
    CHECK(static_cast<double>(placement.bytes) <= most * static_cast<double>(placement.least_bytes));
    CHECK(seconds < 60);  // quadratic work would take minutes, with sanitizers an hour
    if (std::getenv("BITALE_TEST_TIMES"))
        std::cout << lives.size() << " buffers: " << seconds << " s, "
                  << static_cast<double>(placement.bytes) / static_cast<double>(placement.least_bytes)
                  << "\n";
    return placement;
}

}  // namespace

TEST_CASE("40,000 buffers of any lifetimes are placed") {
    constexpr int count = 40000;
    std::mt19937 random(1);
    const auto floats = [&] { return static_cast<std::int64_t>(random() % 5000); };
    std::vector<Life> chain, nested, training, anywhere;
    for (int i = 0; i < count; ++i) {
        chain.push_back({i, i + 1, floats()});
        nested.push_back({i, 2 * count - i, floats()});
        // A layer's map is saved for its gradient, what is between two layers is not.
        training.push_back(i % 2 == 0 ? Life{i, 2 * count - i, floats()} : Life{i, i + 1, floats()});
        const int first = static_cast<int>(random() % count);
        anywhere.push_back({first, first + static_cast<int>(random() % 40), floats()});
    }
    checked(chain, 1.05);
    checked(nested, 1.0);
    checked(training, 1.05);
    checked(anywhere, 1.25);
}

TEST_CASE("few buffers of hostile lifetimes are placed with little waste") {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<Life> lives;
        const int count = 1 + static_cast<int>(random() % 40), steps = 1 + static_cast<int>(random() % 30);
        for (int i = 0; i < count; ++i) {
            const int a = static_cast<int>(random() % static_cast<unsigned>(steps)),
                      b = static_cast<int>(random() % static_cast<unsigned>(steps));
            lives.push_back({std::min(a, b), std::max(a, b), static_cast<std::int64_t>(random() % 3000)});
        }
        checked(lives, 1.3);
    }
    CHECK(plan_arena(Program{}, {}).bytes == 0);
}
