// Expressions and functions under every failure: made or refused, and the next one is right.
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "graph/ir/dlpack_abi.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/gemm.h"
#include "runtime/tune/choices.h"
#include "runtime/tune/measure.h"
#include "tests/faults/machine.h"
#include "tests/faults/new_compiler.h"
#include "tests/faults/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// What a program does before it has a function. What the program itself puts into vectors is there.
Workload expressions() {
    struct State {
        Array value = Array(std::vector<float>(24, 0.5F), {4, 6});
        Shared w = shared(zeros({6, 3}), "w"), filters = shared(zeros({2, 1, 3, 3}), "filters");
        std::vector<Shared> params{w, filters};
        std::vector<Expr> shape{4, 1, 2, 3};
        Axes rows{0};
        std::optional<Updates> updates;
    };
    auto s = std::make_shared<State>();
    return {"expressions", [s] { s->updates.reset(); },
            [s] {
                const Expr x = matrix("x"), y = ivector("y"), i = lscalar("i");
                const Expr centred = (x - mean(x, s->rows, {.keepdims = true})) / 128 + constant(s->value);
                const Expr image = conv2d(reshape(centred, s->shape), s->filters, {.border_mode = half});
                const Expr part = x[{Slice{i, i + 2}, colon}], turned = transpose(flip(part, 0));
                const Expr p = softmax(dot(x, s->w).named("logits"));
                RandomStream stream(1);
                const Expr loss = mean(categorical_crossentropy(p, y)) + sum(max_pool(image, 2)) +
                                  sum(dropout(where(turned > 0, log(turned), 0), 0.5, stream)) +
                                  cast(x.length(0), float32);
                s->updates = adam(loss, s->params, 0.01) + stream.updates();
            },
            [s](bool thrown, bool) -> std::string {
                if (thrown) return s->updates ? "updates in spite of an error" : "";
                // Each parameter with two moments, the number of the step, the stream.
                return s->updates->size() == 8 ? "" : "something else was made";
            }};
}

// What goes into a function and comes out of it.
Workload values() {
    struct State {
        Expr x = vector("x");
        Function f = function({x}, x * 2, {.device = "reference"});
        std::vector<float> in = std::vector<float>(6, 1.5F), out;
        std::optional<Array> result;
    };
    auto s = std::make_shared<State>();
    return {"values",
            [s] {
                s->result.reset();
                s->out.clear();
            },
            [s] {
                const Array six(s->in);
                const Array four = six.as(float64).as(float32).rows(0, 4);
                Array copy = four;
                static_cast<float*>(copy.mutable_data())[0] = 2.5F;
                const Array y = s->f(copy);
                s->out = four.to_vector<float>();
                s->result = y;
            },
            [s](bool thrown, bool) -> std::string {
                if (thrown) return s->result ? "a result in spite of an error" : "";
                const bool right = s->out == std::vector<float>(4, 1.5F) &&
                                   s->result->to_vector<float>() == std::vector<float>{5, 3, 3, 3};
                return right ? "" : "wrong values";
            }};
}

// Arithmetic, slices, text and exchange of arrays.
Workload arithmetic() {
    struct State {
        std::vector<float> out;
        std::string text;
        bool returned = false;
    };
    auto s = std::make_shared<State>();
    return {"arithmetic", [s] { *s = {}; },
            [s] {
                const Array a = {{1.F, 2.F}, {3.F, 4.F}};
                const Array sums = concatenate({a + a, (a * 2).slice(0, 1)}, 0) - a[0];
                const std::unique_ptr<DLManagedTensorVersioned, void (*)(DLManagedTensorVersioned*)> lent(
                    to_dlpack(sums), [](DLManagedTensorVersioned* t) { t->deleter(t); });
                const std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> copied(
                    to_dlpack_unversioned(sums), [](DLManagedTensor* t) { t->deleter(t); });
                DLManagedTensorVersioned* given = to_dlpack(a);
                try {
                    s->returned = same(from_dlpack(given), a);
                } catch (const Error&) {
                    given->deleter(given);
                    throw;
                }
                s->out = sums.to_vector<float>();
                s->text = to_text(sums);
            },
            [s](bool thrown, bool) -> std::string {
                if (thrown) return s->text.empty() ? "" : "a result in spite of an error";
                const bool right = s->returned && s->out == std::vector<float>{1, 2, 5, 6, 5, 6} &&
                                   s->text == "[[1. 2.]\n [5. 6.]\n [5. 6.]]";
                return right ? "" : "wrong values";
            }};
}

// A network's step, built anew; its expressions are there.
struct Building {
    Shared w = shared(zeros({6, 4}), "w");
    Array x = Array(std::vector<float>(18, 0.5f), {3, 6});
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    FunctionOptions options, of_next;
    std::optional<Function> f;

    explicit Building(const std::string& device = "cpu") {
        const Expr in = matrix("x");
        const Expr loss = mean(sqr(tanh(dot(in, w)) - 0.25f));
        inputs = {in};
        outputs = {loss};
        options = {.updates = sgd(loss, {w}, 0.1), .device = device};
    }
    void prepare() {
        f.reset();
        of_next = options;
    }
    void act() { f = function(inputs, outputs, std::move(of_next)); }
    std::string judge(bool thrown) {
        if (thrown) return f ? "a function in spite of an error" : "";
        w.set_value(zeros({6, 4}));
        return double((*f)(x)) == 0.0625 ? "" : "a wrong result";
    }
};

Workload functions(const std::string& device) {
    auto b = std::make_shared<Building>(device);
    return {"function on " + device, [b] { b->prepare(); }, [b] { b->act(); },
            [b](bool thrown, bool) { return b->judge(thrown); }, /*keeps_blocks=*/true};
}

// The first call of a function of unknown lengths, which compiles for its own.
Workload first_calls(const std::string& device) {
    struct State {
        Shared w = shared(Array(0.0F), "w");
        Array x = Array(std::vector<float>(18, 0.5F), {3, 6});
        std::vector<Input> inputs;
        std::vector<Expr> outputs;
        FunctionOptions options;
        Function f;
    };
    auto s = std::make_shared<State>();
    const Expr in = matrix("x");
    s->inputs = {in};
    s->outputs = {mean(sqr(in - 0.25F))};
    s->options = {.updates = {{s->w, s->w + sum(in)}}, .device = device};
    return {"first call on " + device,
            [s] {
                s->f = function(s->inputs, s->outputs, s->options);
                s->w.set_value(Array(0.0F));
            },
            [s] { s->f(s->x); },
            [s](bool thrown, bool) -> std::string {
                if (s->w.get_value().at(0) != (thrown ? 0 : 9)) return "half a step";
                s->w.set_value(Array(0.0F));
                const bool right = double(s->f(s->x)) == 0.0625 && s->w.get_value().at(0) == 9;
                return right ? "" : "a wrong result";
            },
            /*keeps_blocks=*/true};
}

// Functions whose kernels are compiled.
class Compiled {
  public:
    Workload workload() {
        auto b = std::make_shared<Building>();
        return {"function that is compiled",
                [this, b] {
                    compiler_.next();
                    b->prepare();
                },
                [b] { b->act(); },
                [this, b](bool thrown, bool) { return b->judge(thrown) + compiler_.left(); },
                /*keeps_blocks=*/true};
    }

  private:
    NewCompiler compiler_;
};

// A product that is measured in both of its ways, while the function is built or, where only the call tells
// its length, at the first call. Nothing is remembered before.
class Tuned {
  public:
    explicit Tuned(std::optional<std::int64_t> rows) : rows_(rows) {
        Options o = options();
        o.cache_directory = folder_ / "cache";
        o.autotune = true;
        scoped_.emplace(o);
        const Expr a = rows ? input(float32, {*rows, 96}, "a") : matrix("a");
        inputs_ = {a};
        outputs_ = {tanh(dot(a * 2, w_))};
        forget();
        f_ = made();  // compiled, and in memory from now on
        call();
    }
    Workload workload() {
        return {rows_ ? "function that is measured" : "first call that measures",
                [this] {
                    forget();
                    y_.reset();
                    f_ = rows_ ? Function() : made();
                },
                [this] {
                    if (rows_) f_ = made();
                    call();
                },
                [this](bool thrown, bool) -> std::string {
                    if (thrown) return y_ ? "a result in spite of an error" : "";
                    return y_->size() == 48 * 32 && y_->at(0) == std::tanh(0.0F) ? "" : "a wrong result";
                },
                /*keeps_blocks=*/true};
    }

  private:
    static void forget() {
        forget_choices();
        std::filesystem::remove_all(options().cache_directory);
    }
    Function made() { return function(inputs_, outputs_, FunctionOptions{}); }
    void call() { y_ = Array(f_(a_)); }

    std::optional<std::int64_t> rows_;
    TemporaryFolder folder_;
    std::optional<ScopedOptions> scoped_;
    ScopedMeasure measure_{[](const std::vector<Candidate>& candidates) {
        std::vector<double> seconds;
        for (const Candidate& c : candidates) {
            c.run();
            seconds.push_back(static_cast<double>(seconds.size() + 1));
        }
        return seconds;
    }};
    Shared w_ = shared(zeros({96, 32}), "w");
    Array a_ = ones({48, 96});
    std::vector<Input> inputs_;
    std::vector<Expr> outputs_;
    Function f_;
    std::optional<Array> y_;
};

// Of every place in the program that allocates: its first, second and last use, and `random` others.
void check_places(const Workload& workload, std::size_t random, std::size_t most) {
    workload.prepare();
    workload.act();  // what is made once is there
    const std::uint64_t seed = seed_of_run();
    INFO("BITALE_TEST_SEED=" << seed);
    if (std::getenv("BITALE_TEST_FIGURES"))
        std::printf("BITALE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    check(workload, Failing::memory, sample(interesting_allocations(workload, random, seed), most, seed));
}

constexpr std::size_t others = 2000, every = std::size_t{1} << 30;

}  // namespace

TEST_CASE("expressions are made or refused, whatever allocation fails", "[faults]") {
    check_places(expressions(), 100, 300);
}

TEST_CASE("values go in and out or are refused, whatever allocation fails", "[faults]") {
    for (const Workload& workload : {values(), arithmetic()}) {
        check(workload, Failing::memory);
        check(workload, Failing::memory_onwards);
    }
}

TEST_CASE("functions are built or refused, whatever allocation fails", "[faults]") {
    emulator_never_fails();
    for (const char* device : {"cpu", "reference", "emulator"}) check_places(functions(device), 40, 120);
}

TEST_CASE("functions are built or refused, whatever door is shut", "[faults]") {
    emulator_never_fails();
    for (const char* device : {"cpu", "reference", "emulator"}) {
        const Workload workload = functions(device);
        workload.prepare();
        workload.act();
        check(workload, Failing::doors);
    }
}

TEST_CASE("first calls compile for their lengths or are refused, whatever fails", "[faults]") {
    emulator_never_fails();
    for (const char* device : {"cpu", "emulator"}) {
        const Workload workload = first_calls(device);
        check_places(workload, 20, 80);
        check(workload, Failing::doors);
    }
}

TEST_CASE("functions are compiled or refused, whatever door is shut", "[faults]") {
    Compiled compiled;
    check(compiled.workload(), Failing::doors);
    check(compiled.workload(), Failing::doors_onwards);
}

TEST_CASE("functions are compiled or refused, whatever allocation fails", "[faults]") {
    Compiled compiled;
    check_places(compiled.workload(), 20, 60);
}

// A search that ends early finds no compiler, and functions are interpreted without need.
TEST_CASE("a compiler is found or its search ends in an error, whatever allocation fails", "[faults]") {
    const TemporaryFolder folder;
    const std::string command = folder / "compiler";
    write_file(command, "#!/bin/sh\nexec g++ \"$@\"\n");
    chmod(command.c_str(), 0700);
    for (const std::string& named : {std::string(), command + "\t-DOF_ITS_OWN_1  -DOF_ITS_OWN_2"}) {
        Options o = options();
        o.compiler = named;
        const ScopedOptions scoped(o);
        CompilerSearch search;
        const auto act = [&] {
            try {
                search = find_compiler();
            } catch (const std::bad_alloc&) {
                throw OutOfMemory("");  // as whoever calls it makes of it
            }
        };
        check({"search of a compiler", [&] { search = {}; }, act,
               [&](bool thrown, bool) -> std::string {
                   if (thrown) return "";
                   if (!search.found) return "none is found";
                   const bool whole = named.empty() || search.found->command.size() == 3;
                   return whole ? "" : "a part of the command";
               },
               /*keeps_blocks=*/true},
              Failing::memory);
    }
}

TEST_CASE("choices are measured or refused, whatever fails", "[faults]") {
    if (!gemm_library().present) return;
    for (const std::optional<std::int64_t> rows :
         {std::optional<std::int64_t>(48), std::optional<std::int64_t>()}) {
        Tuned tuned(rows);
        check_places(tuned.workload(), 20, 100);
        check(tuned.workload(), Failing::doors);
    }
}

TEST_CASE("every place that allocates for a function, and 2000 others", "[faults][slow]") {
    emulator_never_fails();
    check_places(expressions(), others, every);
    for (const char* device : {"cpu", "reference", "emulator"})
        check_places(functions(device), others, every);
}

TEST_CASE("every place that allocates for a function that is compiled or measured, and 2000 others",
          "[faults][slow]") {
    {
        Compiled compiled;
        check_places(compiled.workload(), others, every);
    }
    if (!gemm_library().present) return;
    for (const std::optional<std::int64_t> rows :
         {std::optional<std::int64_t>(48), std::optional<std::int64_t>()}) {
        Tuned tuned(rows);
        check_places(tuned.workload(), others, every);
    }
}
