// New values of the shared variables of random graphs.
#include <vector>

#include "graph/ir/node.h"
#include "tests/numerics/random_graph.h"

namespace bitale::test {

void GraphGenerator::compute_new_values() {
    for (Update& update : graph_.updates) {
        const Shared target = update.target;
        Expr value(target);
        double bound = 0;
        for (const Value& v : values_)
            if (v.shape == target.shape() && v.x.dtype() == target.dtype() && random_.chance(2)) {
                value = v.x;
                bound = v.bound;
            }
        // The next call is to be exact as well.
        if (is_whole() && !is_special() && is_float(target.dtype()) && bound >= most_of_new_values)
            value = maximum(minimum(value, 3), -3);
        if (random_.chance(2) && target.dtype() != boolean) value = value + 1;
        // The shape of a new value has to be the variable's for certain.
        if (!has_known_shape(value)) value = Expr(target) + 1;
        update = Update(target, target.dtype() == boolean ? Expr(target) : value);
    }
}

void GraphGenerator::replace_by_values() {
    const std::vector<Expr> outputs = graph_.outputs;
    for (const Value& v : values_) {
        const Shape& shape = v.x.node()->type.shape;  // its text is shortened where names are long
        if (v.x.dtype() == boolean || !has_known_shape(v.x) || !random_.chance(5)) continue;
        if (is_whole() && !is_special() && is_float(v.x.dtype()) && v.bound >= most_exact / 8) continue;
        const Value old = make_shared(v.x.dtype(), v.shape);
        const Shared target = graph_.updates.back().target;
        graph_.updates.back() = Update(target, v.x);
        for (const Expr& x : outputs)
            if (x.dtype() == v.x.dtype() && x.node()->type.shape == shape && random_.chance(2))
                graph_.outputs.push_back(old.x * 2 + x);
    }
}

}  // namespace bitale::test
