// Functions of unknown lengths, compiled for those of a call: the bits of inputs that are declared so.
#include <fmt/format.h>

#include <functional>

#include "graph/walk/traverse.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

FunctionOptions options_of(const Updates& updates, bool specialise) {
    FunctionOptions o;
    o.updates = updates;
    o.device = tested_device();
    o.on_unused_input = OnUnused::ignore;
    o.specialise = specialise;
    return o;
}

std::vector<std::string> operations_of(const RandomGraph& g) {
    Nodes roots;
    for (const Expr& x : g.outputs) roots.push_back(x.node());
    for (const Update& u : g.updates) roots.push_back(u.value.node());
    std::vector<std::string> names;
    for (const NodePtr& node : topological(roots)) names.push_back(node->op->name);
    return names;
}

// What a call computes, and the new values of variables.
std::vector<Array> all_of(const RandomGraph& g, bool specialise) {
    Function f = function(std::vector<Input>(g.inputs.begin(), g.inputs.end()), g.outputs,
                          options_of(g.updates, specialise));
    const Results results = f.call(g.arguments);
    std::vector<Array> all;
    for (std::size_t k = 0; k < results.size(); ++k) all.push_back(results[k]);
    for (const Update& u : g.updates) all.push_back(u.target.get_value());
    return all;
}

RandomGraph generated(std::uint64_t seed, bool declared) {
    GraphGenerator generator(seed, Arithmetic::smooth);
    generator.declares_trailing_lengths = declared;
    return generator.generate(14);
}

}  // namespace

TEST_CASE("random graphs of unknown lengths have the bits of declared ones") {
    int compared = 0;
    for (const std::uint64_t first : {std::uint64_t{301}, first_newer_seed + 301, first_seed_of_groups + 301})
        for (std::uint64_t seed = first; seed < first + 12; ++seed) {
            const RandomGraph unknown = generated(seed, false), declared = generated(seed, true);
            // Where a length is known, expressions and gradients may be others from the start.
            if (operations_of(unknown) != operations_of(declared)) continue;
            INFO("seed " << seed);
            const std::vector<Array> a = all_of(unknown, true), b = all_of(declared, false);
            REQUIRE(a.size() == b.size());
            for (std::size_t k = 0; k < a.size(); ++k) CHECK(difference(a[k], b[k]) == "");
            ++compared;
        }
    CHECK(compared >= 12);
}

TEST_CASE("networks and rows of unknown lengths have the bits of declared ones") {
    using Writer = std::function<Expr(const Expr& x, const Expr& y)>;
    struct Form {
        const char* name;
        Dims x, y;
        Writer write;
    };
    Random random(3);
    const Expr filters = shared(random_array(float32, {6, 3, 3, 3}, random, -1, 1), "filters"),
               matrix_of_images = shared(random_array(float32, {6 * 5 * 4, 7}, random, -1, 1), "v");
    const auto net = [&](const Expr& x, const Expr&) {
        return dot(flatten(max_pool(relu(conv2d(x, filters)), 2), 2), matrix_of_images);
    };
    const std::vector<Form> forms = {
        {"a convolutional network", {5, 3, 12, 10}, {1, 1}, net},
        {"its gradient by the images",
         {5, 3, 12, 10},
         {1, 1},
         [&](const Expr& x, const Expr& y) { return grad(sum(sqr(net(x, y))), x); }},
        {"a product of two arguments",
         {9, 33},
         {33, 20},
         [](const Expr& x, const Expr& y) { return dot(x, y); }},
        {"features first", {9, 33}, {20, 9}, [](const Expr& x, const Expr& y) { return dot(y, x); }},
        {"rows of 300",
         {7, 300},
         {7, 300},
         [](const Expr& x, const Expr& y) { return log_softmax(x * y + mean(x)) - cumsum(y, 1); }},
        {"rows of one element",
         {7, 1},
         {7, 1},
         [](const Expr& x, const Expr& y) {
             return softmax(x + y) * sum(x, {0}) + max(y, {1}, {.keepdims = true});
         }},
        {"planes",
         {3, 17, 40},
         {3, 40, 5},
         [](const Expr& x, const Expr& y) { return matmul(x, y) / cast(x.length(2), float32); }},
    };
    for (const Form& form : forms) {
        INFO(form.name);
        const auto declared = [](const Dims& shape, const char* name) {
            Dims d = shape;
            d[0] = -1;
            return input(float32, d, name);
        };
        const std::vector<Array> arguments = {random_array(float32, form.x, random, -1, 1),
                                              random_array(float32, form.y, random, -1, 1)};
        const auto value = [&](const Expr& x, const Expr& y, bool specialise) {
            Function f = function({x, y}, form.write(x, y), options_of({}, specialise));
            return Array(f.call(arguments)[0]);
        };
        const Array got = value(input(float32, form.x.size(), "x"), input(float32, form.y.size(), "y"), true),
                    expected = value(declared(form.x, "x"), declared(form.y, "y"), false);
        CHECK(difference(got, expected) == "");
    }
}
