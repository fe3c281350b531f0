// Checkpoints: what is saved comes back, what does not fit changes nothing, and training goes on with the
// bits of training that was never interrupted.
#include <algorithm>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"
#include "tests/training/shorthands.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// A network with all that a step may remember: Adam's moments, a stream of random numbers, a counter of steps
// for the rate; and the order of the images. What a fresh process would make.
struct Training {
    explicit Training(const std::string& device) {
        const Shared w1 = params.in("net.hidden").add("w", glorot_uniform({12, 16}, 1)),
                     b1 = params.in("net.hidden").add("b", zeros({16})),
                     w2 = params.in("net.out").add("w", glorot_uniform({16, 3}, 2));
        const Expr i = lscalar("i"), rows = order[range(i * 10, (i + 1) * 10)];
        const Expr x = images[rows], y = labels[rows];
        const Expr h = dropout(relu(dot(x, w1) + b1), 0.5, random);
        const Expr loss = mean(softmax_crossentropy(dot(h, w2), y));
        updates = adamw(clip_by_global_norm(gradients(loss, params), 1),
                        cosine_decay(step, 0.05, 24, {.warm_up = 4}));
        train = function({i}, {loss}, {.updates = updates, .device = device});
    }
    static Array numbered(const Dims& shape) { return uniform_values(shape, -1, 1, 11); }
    static Array classes() {
        std::vector<std::int32_t> list(60);
        for (std::size_t k = 0; k < list.size(); ++k) list[k] = static_cast<std::int32_t>(k * 7 % 3);
        return list;
    }
    // Epochs of six steps, each in an order of its own.
    void run(int epochs) {
        for (const int last = epoch + epochs; epoch < last; ++epoch) {
            order.set_value(permutation(60, static_cast<std::uint64_t>(epoch)));
            const Array losses = train.loop(0, 6)[0];
            for (std::int64_t k = 0; k < losses.size(); ++k) history.push_back(losses.at(k));
            best = std::min(best, history.back());
        }
    }
    Checkpoint state() { return {params, updates, random, order, {"epoch", epoch}, {"best", best}}; }

    Shared images = shared(numbered({60, 12}), "images"), labels = shared(classes(), "labels"),
           order = shared(permutation(60, 0), "order");
    StepCounter step;
    RandomStream random{5};
    Parameters params;
    Updates updates;
    Function train;
    int epoch = 0;
    double best = 1e9;
    std::vector<double> history;
};

std::string file_text(const std::string& path) { return text_of_file(path); }

}  // namespace

TEST_CASE("training that goes on from a checkpoint has the bits of training that was never interrupted") {
    const TemporaryFolder folder;
    for (const std::string& device :
         {std::string(tested_device()), std::string("emulator"), std::string("reference")})
        for (const std::string& ending : endings) {
            INFO(device << ending);
            const std::string path = folder / ("run" + ending);
            Training whole(device), first(device), second(device);
            whole.run(4);
            first.run(2);
            save_checkpoint(path, first.state());
            CHECK(load_checkpoint(path, second.state()).missing.empty());
            CHECK(second.epoch == 2);
            CHECK(second.best == first.best);
            second.run(2);
            CHECK(std::vector<double>(whole.history.begin() + 12, whole.history.end()) == second.history);
            CHECK(whole.best == second.best);
            const Checkpoint a = whole.state(), b = second.state();
            REQUIRE(a.entries().size() == b.entries().size());
            for (std::size_t k = 0; k < a.entries().size(); ++k) {
                if (!a.entries()[k].variable.state()) continue;
                INFO(a.entries()[k].name);
                CHECK(same(a.entries()[k].variable.get_value(), b.entries()[k].variable.get_value()));
            }
            CHECK(whole.step.counter().get_value().item<std::int64_t>() == 24);
            // Not by chance: without the state the second half differs.
            Training without(device);
            load_checkpoint(path, {without.params, without.order, {"epoch", without.epoch}},
                            {.strict = false});
            without.run(2);
            CHECK(without.history != second.history);
        }
}

TEST_CASE("a checkpoint has what updates write and the counters that they read") {
    Training training("reference");
    std::vector<std::string> names;
    const Checkpoint state{training.updates};
    for (const Checkpoint::Entry& e : state.entries()) names.push_back(e.name);
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"adamw.t", "net.hidden.b", "net.hidden.b.m", "net.hidden.b.v",
                                            "net.hidden.w", "net.hidden.w.m", "net.hidden.w.v", "net.out.w",
                                            "net.out.w.m", "net.out.w.v", "random.counter", "step"});
}

TEST_CASE("checkpoints keep every dtype, numbers and arrays of the program, in both formats") {
    const TemporaryFolder folder;
    Random values(3);
    for (const std::string& ending : endings) {
        INFO(ending);
        const std::string path = folder / ("all" + ending);
        std::vector<Shared> saved, loaded;
        for (int t = 0; t < dtype_count; ++t) {
            const auto dtype = static_cast<DType>(t);
            for (const Dims& shape : {Dims{}, Dims{0}, Dims{3, 5}}) {
                const std::string name = std::string(name_of(dtype)) + text_of(shape);
                saved.push_back(shared(random_array(dtype, shape, values), name));
                loaded.push_back(shared(zeros(shape, dtype), name));
            }
        }
        bool flag = true;
        std::int8_t small = -7;
        std::uint64_t large = 0xfedcba9876543210;
        std::int64_t steps = -(std::int64_t{1} << 60);
        float rate = 0.1F;
        double best = 1.0 / 3;
        Array history = std::vector<double>{1, 2, 3};
        const auto state_of = [&](const std::vector<Shared>& variables) {
            return Checkpoint{variables,        {"flag", flag}, {"small", small}, {"large", large},
                              {"steps", steps}, {"rate", rate}, {"best", best},   {"history", history}};
        };
        save_checkpoint(path, state_of(saved));
        const Array kept = history;
        flag = false, small = 0, large = 0, steps = 0, rate = 0, best = 0, history = Array();
        const LoadedCheckpoint result = load_checkpoint(path, state_of(loaded));
        CHECK(result.missing.empty());
        CHECK(result.surplus.empty());
        for (std::size_t k = 0; k < saved.size(); ++k) {
            INFO(saved[k].name());
            CHECK(same(saved[k].get_value(), loaded[k].get_value()));
        }
        CHECK(flag);
        CHECK(small == -7);
        CHECK(large == 0xfedcba9876543210);
        CHECK(steps == -(std::int64_t{1} << 60));
        CHECK(rate == 0.1F);
        CHECK(best == 1.0 / 3);
        CHECK(same(history, kept));
        // Equal states are equal files.
        const std::string text = file_text(path);
        save_checkpoint(path, state_of(saved), {.durable = false});
        CHECK(file_text(path) == text);
    }
}

TEST_CASE("all that does not fit is said at once, and nothing has changed") {
    const TemporaryFolder folder;
    for (const std::string& ending : endings) {
        INFO(ending);
        const std::string path = folder / ("old" + ending);
        int epoch = 3;
        double best = 0.5;
        RandomStream stream(7);
        {
            const Shared w = shared(ones({3}), "w"), shape = shared(ones({2, 3}), "shape"),
                         type = shared(ones({3}, float64), "type"), old = shared(ones({4}), "old \"name\"");
            save_checkpoint(path, {w, shape, type, old, stream, {"epoch", epoch}});
        }
        const Where line = Where::current();
        const Shared w = shared(zeros({3}), "w"), shape = shared(zeros({3, 2}), "shape"),
                     type = shared(zeros({3}), "type"), fresh = shared(zeros({5}), "fresh");
        RandomStream other(8);
        std::int64_t wide = 1;
        const auto untouched = [&] {
            for (const Shared& s : {w, shape, type, fresh})
                for (const double v : s.get_value().to_vector<double>())
                    if (v != 0) return false;
            return wide == 1 && best == 0.5;
        };
        const Checkpoint state{w, shape, type, fresh, other, {"epoch", wide}, {"best", best}};
        const std::string message = message_of<FileError>([&] { load_checkpoint(path, state); });
        INFO(message);
        CHECK(message.starts_with("checkpoint_test.cpp:"));
        const std::string made = "(made at " + Where{line.file, line.line + 1}.text();
        for (const std::string& part :
             {"old" + ending, std::string("nothing has changed"),
              "another shape: \"shape\" is float32 [3, 2] " + made + "), and float32 [2, 3] in the file",
              std::string("another dtype: \"type\" is float32 [3] (made at"),
              std::string("float64 [3] in the file"),
              std::string("missing in the file: \"fresh\", float32 [5]"),
              std::string("missing in the file: \"best\", float64 []"),
              std::string("surplus in the file: \"old \\\"name\\\"\", float32 [4]"),
              std::string("another seed: \"random.seed\" is 8"), std::string("and 7 in the file"),
              std::string("another dtype: \"epoch\" is int64 []"), std::string("{.strict = false}")})
            CHECK_THAT(message, ContainsSubstring(part));
        CHECK(untouched());

        // What is there but does not fit is wrong without `strict` too.
        const std::string loose =
            message_of<FileError>([&] { load_checkpoint(path, state, {.strict = false}); });
        CHECK_THAT(loose, ContainsSubstring("another shape: \"shape\""));
        CHECK(loose.find("missing") == std::string::npos);
        CHECK(untouched());
        const LoadedCheckpoint part = load_checkpoint(path, {w, fresh, {"best", best}}, {.strict = false});
        CHECK(part.missing == std::vector<std::string>{"fresh", "best"});
        CHECK(part.surplus == std::vector<std::string>{"epoch", "old \"name\"", "random.counter",
                                                       "random.seed", "shape", "type"});
        CHECK(same(w.get_value(), ones({3})));
        CHECK(same(fresh.get_value(), zeros({5})));
        CHECK(best == 0.5);
    }
}

TEST_CASE("a message lists some of very many things that do not fit") {
    const TemporaryFolder folder;
    const std::string path = folder / "many.npz";
    std::map<std::string, Array> values;
    for (int i = 0; i < 1000; ++i) values.emplace("v" + std::to_string(i), Array(i));
    save_npz(path, values);
    const Shared w = shared(zeros({3}), "w");
    const std::string message = message_of<FileError>([&] { load_checkpoint(path, {w}); });
    CHECK(message.size() < 10000);
    CHECK_THAT(message, ContainsSubstring("missing in the file: \"w\"") && ContainsSubstring("... and more"));
}

TEST_CASE("what cannot be told apart in a file is refused when a checkpoint is written down") {
    const Where line = Where::current();
    const Shared a = shared(ones({1}), "w"), b = shared(ones({1}), "w"), none = shared(ones({1})),
                 bad = shared(ones({1}), "a\nb"), meta = shared(ones({1}), "__metadata__");
    int epoch = 0;
    const std::string message = message_of<GraphError>([&] { Checkpoint{a, b}; });
    CHECK_THAT(message, ContainsSubstring("two entries of a checkpoint have the name \"w\", made at " +
                                          Where{line.file, line.line + 1}.text() + " and at"));
    CHECK_THROWS_AS((Checkpoint{a, {"w", epoch}}), GraphError);
    CHECK_THAT(message_of<GraphError>([&] { Checkpoint{none}; }), ContainsSubstring("has no name"));
    CHECK_THAT(message_of<GraphError>([&] { Checkpoint{bad}; }), ContainsSubstring("\"a\\nb\""));
    CHECK_THROWS_AS(Checkpoint{meta}, GraphError);
    CHECK_THROWS_AS(Checkpoint{Shared()}, GraphError);
    CHECK(Checkpoint{a, a, std::vector<Shared>{a}}.entries().size() == 1);
    RandomStream one(1), two(2);
    const Expr noise = one.uniform({3}) + two.uniform({3});
    const Updates updates{{a, sum(noise, {}, {.keepdims = true})}};
    CHECK_THROWS_AS((Checkpoint{one, two}), GraphError);
    CHECK_THROWS_AS(Checkpoint{updates}, GraphError);
    CHECK((Checkpoint{one, {"drop", two}}).entries().size() == 4);
    const Checkpoint both{updates, one, {"drop", two}};
    std::vector<std::string> names;
    for (const Checkpoint::Entry& e : both.entries()) names.push_back(e.name);
    std::sort(names.begin(), names.end());
    CHECK(names ==
          std::vector<std::string>{"drop.counter", "drop.seed", "random.counter", "random.seed", "w"});
    const StepCounter steps("decays");
    CHECK(Checkpoint{steps}.entries()[0].name == "decays");
}

TEST_CASE("files that are no checkpoints are refused by their names and contents") {
    const TemporaryFolder folder;
    const Shared w = shared(ones({2}, bfloat16), "w");
    CHECK_THAT(message_of<FileError>([&] { save_checkpoint(folder / "run.bin", {w}); }),
               ContainsSubstring("name it .npz or .safetensors"));
    CHECK_THROWS_AS(load_checkpoint(folder / "run", {w}), FileError);
    CHECK_THAT(message_of<FileError>([&] { save_checkpoint(folder / "no/such.npz", {w}); }),
               ContainsSubstring("No such file"));
    CHECK_THROWS_AS(load_checkpoint(folder / "none.npz", {w}), FileError);
    const std::string path = folder / "x.npz";
    const auto fault = [&](const std::string& text, const Array& value) {
        save_npz(path, {{"w", value}, {"__metadata__", std::vector<std::uint8_t>(text.begin(), text.end())}});
        return message_of<FileError>([&] { load_checkpoint(path, {w}); });
    };
    const Array bits = std::vector<std::uint16_t>{0x3f80, 0x3f80};
    CHECK_THAT(fault("", bits), ContainsSubstring("malformed entry __metadata__"));
    CHECK_THAT(fault("{\"w\":1}", bits), ContainsSubstring("malformed entry __metadata__"));
    CHECK_THAT(fault("{\"v\":\"bfloat16\"}", bits),
               ContainsSubstring("names the dtype \"bfloat16\" for \"v\""));
    CHECK_THAT(fault("{\"w\":\"int4\"}", bits), ContainsSubstring("names the dtype \"int4\""));
    CHECK_THAT(fault("{\"w\":\"bfloat16\"}", Array(1)), ContainsSubstring("no uint16"));
    CHECK_THAT(fault("{\"__metadata__\":\"bfloat16\"}", bits), ContainsSubstring("no uint16"));
    save_npz(path, {{"w", bits}, {"__metadata__", Array(1.0)}});
    CHECK_THAT(message_of<FileError>([&] { load_checkpoint(path, {w}); }), ContainsSubstring("no text"));
    save_npz(path, {{"w", bits}});
    CHECK_THAT(message_of<FileError>([&] { load_checkpoint(path, {w}); }),
               ContainsSubstring("another dtype: \"w\""));
    save_checkpoint(path, {w});
    CHECK_THAT(message_of<FileError>([&] { load_checkpoint(path, {w}, {.limits = {.bytes = 3}}); }),
               ContainsSubstring("more than 3 bytes"));
    CHECK(same(load_npz(path).at("w"), bits));
}
