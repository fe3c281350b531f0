// Random graphs: optimised and not, the oracle must see the same values; every pass verified.
#include <algorithm>

#include "ops/oracle/wide.h"
#include "ops/registry.h"
#include "tests/rules/instantiate.h"
#include "tests/rules/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

// A graph of some dozen nodes that likes to reuse what it has. Values are kept small: rounding must not
// decide.
class RandomGraph {
  public:
    explicit RandomGraph(unsigned seed) : tools_(seed) {
        const Shape shape = tools_.pick(std::vector<Shape>{{3}, {2, 3}, {2, 2, 4, 4}, {1, 4}});
        for (int i = 0; i < 3; ++i) nodes_.push_back(tools_.leaf({float32, shape}));
        nodes_.push_back(tools_.leaf({int32, shape}));
        for (const double c : {0.0, 1.0, 2.0, -0.5}) nodes_.push_back(scalar_node(float32, c));
        constexpr int most_tries = 60;
        for (int i = 0; i < most_tries; ++i) grow();
    }

    Graph graph() const {
        Graph graph;
        for (std::size_t i = nodes_.size(); i-- > 0 && graph.outputs.size() < 4;)
            graph.outputs.push_back(nodes_[i]);
        for (const NodePtr& node : topological(graph.outputs))
            if (node->op == input_op()) graph.inputs.push_back(node);
        return graph;
    }
    std::unordered_map<const Node*, Array> leaf_values() {
        return tools_.leaf_values(fuzz::Values::no_infinities);
    }

  private:
    void grow() {
        static const std::vector<std::string> ops = {
            "add",      "sub",         "mul",     "neg",         "abs",     "sqr",     "relu",
            "tanh",     "sigmoid",     "maximum", "minimum",     "where",   "gt",      "exp",
            "log1p",    "softplus",    "cast",    "reshape",     "permute", "expand",  "slice",
            "flip",     "pad",         "sum",     "max",         "mean",    "softmax", "log_softmax",
            "max_pool", "pool_winner", "unpool",  "logical_not", "floor"};
        const Op* op = find_op(tools_.pick(ops));
        Nodes inputs;
        for (int i = 0; i < std::max(op->arity, 1); ++i) inputs.push_back(tools_.pick(nodes_));
        try {
            if (op->name == "unpool") inputs = pooled_pair();
            // Of constants alone, rounding would decide: floor(exp(log1p(2))).
            if (op->name == "gt" || op->name == "floor" || op->name == "cast") inputs[0] = varying();
            const NodePtr made = make_node(op, inputs, tools_.attributes_for(op, inputs), {"user.cpp", 2});
            constexpr std::int64_t most_elements = 256;
            if (count_of(static_dims(made->type.shape)) <= most_elements) nodes_.push_back(made);
        } catch (const std::exception&) {
            return;  // operands that do not fit
        }
    }

    // A node that depends on a leaf.
    NodePtr varying() {
        for (;;) {
            const NodePtr node = tools_.pick(nodes_);
            for (const NodePtr& below : topological({node}))
                if (below->op == input_op()) return node;
        }
    }

    // A winner, new if there is none, and a value of its shape.
    Nodes pooled_pair() {
        Nodes winners;
        for (const NodePtr& node : nodes_)
            if (node->op->name == "pool_winner") winners.push_back(node);
        if (winners.empty()) {
            static const Op* op = find_op("pool_winner");
            const Nodes image{tools_.pick(nodes_)};
            winners.push_back(make_node(op, image, tools_.attributes_for(op, image), {"user.cpp", 3}));
        }
        const NodePtr winner = tools_.pick(winners);
        Nodes fitting;
        for (const NodePtr& node : nodes_)
            if (node->type.dtype == float32 && node->type.shape == winner->type.shape)
                fitting.push_back(node);
        return {fitting.empty() ? tools_.leaf({float32, winner->type.shape}) : tools_.pick(fitting), winner};
    }

    fuzz::Instantiator tools_;
    Nodes nodes_;
};

bool close(double a, double b) { return std::abs(a - b) <= 1e-4 * (1 + std::abs(a)); }

// Whether rounding decides element k, as in floor(x * 3) or gt(a, b) where a and b are equal but for it:
// leaves that are a little larger or smaller give another value.
bool jumps(const NodePtr& output, const std::unordered_map<const Node*, Array>& leaves, std::int64_t k) {
    double least = INFINITY, most = -INFINITY;
    for (const double by : {-1e-6, 1e-6}) {
        std::unordered_map<const Node*, Array> moved;
        for (const auto& [leaf, value] : leaves) {
            Array other = value;
            if (other.dtype() == float32) {
                auto* x = static_cast<float*>(other.mutable_data());
                for (std::int64_t i = 0; i < other.size(); ++i)
                    x[i] = static_cast<float>(x[i] + by * (1 + std::abs(x[i])));
            }
            moved.emplace(leaf, other);
        }
        const double value = evaluate_wide({output}, moved)[0]->rounded().at(k);
        least = std::min(least, value);
        most = std::max(most, value);
    }
    return !close(least, most);
}

void compare(unsigned seed) {
    register_all_ops();
    RandomGraph random(seed);
    Graph graph = random.graph();
    const Nodes before = graph.outputs;
    Options checked = options();
    checked.verify = true;
    const ScopedOptions scope(checked);
    INFO("seed " << seed);
    optimize(graph);
    const auto leaves = random.leaf_values();
    std::vector<Array> expected;
    try {
        expected = rounded(evaluate_wide(before, leaves));
    } catch (const Error&) {
        return;  // a maximum of nothing
    }
    const std::vector<Array> got = rounded(evaluate_wide(graph.outputs, leaves));
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("output " << i << ": " << text_of(before[i]) << "\nbecame " << text_of(graph.outputs[i]));
        REQUIRE(got[i].shape() == expected[i].shape());
        REQUIRE(got[i].dtype() == expected[i].dtype());
        for (std::int64_t k = 0; k < got[i].size(); ++k) {
            const double a = expected[i].at(k), b = got[i].at(k);
            if (!std::isfinite(a) || close(a, b) || jumps(before[i], leaves, k)) continue;  // or stabilized
            INFO("element " << k << ": " << a << " became " << b);
            REQUIRE(close(a, b));
        }
    }
}

}  // namespace

TEST_CASE("random graphs keep their values") {
    for (unsigned seed = 1; seed <= 300; ++seed) compare(seed);
}

TEST_CASE("random graphs keep their values, many", "[slow]") {
    for (unsigned seed = 1'000; seed <= 30'000; ++seed) compare(seed);
}

TEST_CASE("a chain of 100,000 nodes is optimised") {
    const Expr x = vector("x");
    Expr y = x;
    for (int i = 0; i < 50'000; ++i) y = sigmoid(y + 0.5F);
    const Graph graph = optimized_graph({y});
    CHECK(topological(graph.outputs).size() == 100'002);
}
