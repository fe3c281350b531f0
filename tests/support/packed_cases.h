// Generated code against the oracle. Compiling costs far more than running, so many cases go into one
// function.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/ir/node.h"
#include "graph/walk/traverse.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/oracles.h"

namespace bitale::test {

class PackedCases {
  public:
    explicit PackedCases(std::string device, double tolerance = 1e-5)
        : device_(std::move(device)), tolerance_(tolerance) {}

    // y over inputs that take these values.
    void add(std::string name, std::vector<Expr> inputs, std::vector<Array> values, const Expr& y) {
        add(std::move(name), std::move(inputs), std::move(values), y, y);
    }
    // Where the oracle is asked for another form of y, as y itself overflows without the rules.
    void add(std::string name, std::vector<Expr> inputs, std::vector<Array> values, const Expr& y,
             const Expr& expected) {
        cases_.push_back({std::move(name), std::move(inputs), std::move(values), y, expected});
    }

    // Compiles and compares all of them.
    void run(std::size_t in_one_function = 12) const {
        for (std::size_t first = 0; first < cases_.size(); first += in_one_function)
            run_some(first, std::min(first + in_one_function, cases_.size()));
    }

  private:
    struct Case {
        std::string name;
        std::vector<Expr> inputs;
        std::vector<Array> values;
        Expr y, expected;
    };

    void run_some(std::size_t first, std::size_t last) const {
        std::vector<Input> inputs;
        std::vector<Array> values;
        std::vector<Expr> outputs;
        std::set<const Node*> seen;
        for (std::size_t k = first; k < last; ++k) {
            const Case& c = cases_[k];
            for (std::size_t i = 0; i < c.inputs.size(); ++i) {
                if (!seen.insert(c.inputs[i].node().get()).second) continue;
                inputs.emplace_back(c.inputs[i]);
                values.push_back(c.values[i]);
            }
            outputs.push_back(c.y);
        }
        INFO("from " << cases_[first].name << " to " << cases_[last - 1].name);
        const FunctionOptions options{
            .name = "packed", .device = device_, .on_unused_input = OnUnused::ignore};
        Function f = function(inputs, outputs, options);
        const Results results = f.call(values);
        for (std::size_t k = first; k < last; ++k) compare(cases_[k], results[k - first]);
    }

    void compare(const Case& c, const Array& got) const {
        const WidePtr expected = evaluated_wide({c.expected}, c.inputs, c.values)[0];
        INFO(c.name << ": " << got.text() << ", the oracle says " << expected->rounded().text());
        CHECK(got.dtype() == expected->dtype);
        REQUIRE(got.shape() == expected->shape);
        std::int64_t undetermined = 0;
        CHECK(difference(got, *expected, &undetermined) == "");
        // The two oracles share nothing: where they agree, neither has a bug of its own.
        const Array typed = evaluated_typed(c.expected, c.inputs, c.values);
        CHECK(difference(typed, *expected) == "");
        // Where rounding may turn a result into anything: what it does turn it into, or by the rules that
        // stabilise the right value.
        const Tolerance tolerance = tolerance_of(c.y);
        if (undetermined > 0)
            CHECK((difference(got, typed, tolerance).empty() ||
                   difference(got, expected->rounded(), tolerance).empty()));
    }

    // What rounding does to a map depends on its element; what it does to a sum depends on the
    // summands, and those of an element that cancels are of the size of its neighbours.
    Tolerance tolerance_of(const Expr& y) const {
        const Nodes nodes = topological({y.node()});
        const bool adds = std::any_of(nodes.begin(), nodes.end(), [](const NodePtr& node) {
            return node->op->kind == OpKind::reduce || node->op->kind == OpKind::composite;
        });
        return {.absolute = tolerance_, .relative = tolerance_, .of_largest = adds ? tolerance_ : 0};
    }

    std::string device_;
    double tolerance_;
    std::vector<Case> cases_;
};

}  // namespace bitale::test
