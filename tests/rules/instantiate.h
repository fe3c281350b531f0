// Random graphs that a pattern matches: wildcards become leaves (or small graphs) of random types, attributes
// are drawn to fit. Draws that cannot be typed are left to the caller to repeat.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <unordered_map>

#include "graph/rewrite/pattern.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale::fuzz {

// Which values leaves get.
enum class Values : std::uint8_t { everything, no_infinities };

class Instantiator {
  public:
    explicit Instantiator(unsigned seed) : random_(seed) {}

    // A node that matches, if the guard likes it; throws what make_node throws.
    NodePtr instance(const Pattern& pattern) {
        static const std::vector<DType> dtypes = {float32, float32, float64, int8,   int32,
                                                  uint8,   int64,   uint32,  boolean};
        static const std::vector<Shape> shapes = {{},        {3},          {2, 3},       {4, 3},
                                                  {2, 1, 3}, {1, 2, 5, 4}, {2, 2, 4, 6}, {1, 1}};
        bound_.clear();
        dtype_ = pick(dtypes);
        if ((*pattern).name == "logical_or" && !chance(3)) dtype_ = boolean;
        shape_ = pick(shapes);
        constants_ = chance(12);
        beside_ = mask_ = factor_ = nullptr;
        place_axis_ = between(0, 3);
        place_parts_ = between(1, 3);
        places_beyond_ = between(0, 2);
        placed_ = 0;
        return build(*pattern, "", 0);
    }

    // Values for the input leaves below the last instance.
    std::unordered_map<const Node*, Array> leaf_values(Values values) {
        std::unordered_map<const Node*, Array> r;
        for (const auto& [leaf, most] : leaves_) r.emplace(leaf.get(), array(leaf->type, values, most));
        return r;
    }

    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    bool chance(int one_in) { return between(1, one_in) == 1; }
    template <class T>
    const T& pick(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
    }

    // Elements below `most` if it is not 0 (labels, winners).
    Array array(const Type& type, Values values, std::int64_t most) {
        Array r(type.dtype, static_dims(type.shape));
        const double usual = static_cast<double>(between(1, 6));
        dispatch(type.dtype, [&](auto zero) {
            using T = decltype(zero);
            auto* to = static_cast<T*>(r.mutable_data());
            for (std::int64_t i = 0; i < r.size(); ++i) to[i] = element<T>(values, most, usual);
        });
        return r;
    }

    NodePtr leaf(const Type& type, std::int64_t most = 0) {
        if (constants_) return make_constant(array(type, Values::no_infinities, most));
        const NodePtr made = make_input(type, "x" + std::to_string(leaves_.size()), {"user.cpp", 1});
        leaves_.emplace_back(made, most);
        return made;
    }

    // Attributes that fit the operands; empty for ops that have none.
    Attributes attributes_for(const Op* op, const Nodes& inputs) {
        using Axes = std::vector<std::int64_t>;
        static const std::vector<DType> all = {boolean, int8,   int16,   int32,    int64,   uint8,  uint16,
                                               uint32,  uint64, float16, bfloat16, float32, float64};
        const Shape& shape = inputs.at(0)->type.shape;
        const auto rank = static_cast<std::int64_t>(shape.size());
        const std::string& name = op->name;
        if (name == "scatter") return {{"extent", Int(3)}};
        if (name == "cast") return {{"dtype", pick(all)}};
        if (name == "root") return {{"exponent", 0.5}};
        if (name == "reshape") return {{"shape", other_shape(shape)}};
        if (name == "expand") return {{"shape", larger_shape(shape)}};
        if (name == "permute") {
            Axes axes;
            for (std::int64_t i = 0; i < rank; ++i) axes.push_back(i);
            if (!chance(4)) std::shuffle(axes.begin(), axes.end(), random_);
            return {{"axes", axes}};
        }
        if (name == "slice") return slice_attributes(shape);
        if (name == "place_slice") return place_attributes(shape);
        if (name == "pad") {
            Axes before, after;
            const std::int64_t widest = chance(2) ? 0 : 2;
            for (std::int64_t i = 0; i < rank; ++i) {
                before.push_back(between(0, widest));
                after.push_back(between(0, widest));
            }
            return {{"before", before}, {"after", after}, {"value", 1.0}};
        }
        if (name == "flip" || name == "concat" || name == "softmax" || name == "log_softmax") {
            if (rank == 0) throw std::runtime_error(name + " needs an axis");
            return {{"axis", between(0, rank - 1)}};
        }
        if (name == "sum" || name == "prod" || name == "max" || name == "min" || name == "supremum" ||
            name == "logsumexp" || name == "norm" || name == "any" || name == "all" || name == "argmax" ||
            name == "argmin" || name == "mean") {
            Axes axes;
            for (std::int64_t i = 0; i < rank; ++i)
                if (chance(2)) axes.push_back(i);
            return {{"axes", axes}};
        }
        if (name == "max_pool" || name == "pool_winner") return pool_attributes();
        if (name == "unpool") {
            if (inputs.at(1)->op->name != "pool_winner") throw std::runtime_error("unpool needs a winner");
            Attributes a = inputs[1]->attributes;
            const Shape& image = inputs[1]->inputs.at(0)->type.shape;
            a.set("height", image[image.size() - 2]);
            a.set("width", image.back());
            return a;
        }
        if (name == "conv") return geometry();
        if (name == "conv_grad_w") return conv_;
        if (name == "conv_grad_x") return image_attributes(inputs);
        return {};
    }

  private:
    NodePtr build(const PatternNode& pattern, const std::string& user, std::size_t position) {
        if (const auto at = bound_.find(&pattern); at != bound_.end()) return at->second;
        NodePtr made;
        switch (pattern.kind) {
            case PatternNode::Kind::any: made = wildcard(user, position); break;
            case PatternNode::Kind::constant:
                made = number(user == "pow" && chance(2) ? 0.25 : chosen_number());
                break;
            case PatternNode::Kind::number:
                made = number(pattern.number, user == "where" && position == 0);
                break;
            case PatternNode::Kind::of_kind: made = any_op(pattern.op_kind); break;
            case PatternNode::Kind::nested: made = nest_of(pattern.op()); break;
            case PatternNode::Kind::apply: {
                // Last operands first: the winner of unpool tells the shape of its gradient.
                Nodes inputs(pattern.operands.size());
                for (std::size_t i = inputs.size(); i-- > 0;) {
                    inputs[i] = build(*pattern.operands[i], pattern.name, i);
                    pooled_ = inputs[i]->type.shape;
                }
                // A commutative op matches the other order too.
                const Op* op = pattern.op();
                if (op->map && op->map->commutative && chance(2)) std::reverse(inputs.begin(), inputs.end());
                Attributes attributes = attributes_for(op, inputs);
                for (const auto& [name, value] : pattern.attributes.entries()) attributes.set(name, value);
                made = make_node(op, std::move(inputs), attributes, {"user.cpp", 2});
            }
        }
        bound_[&pattern] = made;
        return made;
    }

    // Of two levels, in one operand or in both.
    NodePtr nest_of(const Op* op) {
        const auto of = [&](Nodes inputs, const Attributes& attributes) {
            return make_node(op, std::move(inputs), attributes, {"user.cpp", 2});
        };
        Nodes parts;
        for (int i = 0; i < 4; ++i) parts.push_back(leaf({dtype_, shape_}));
        const Attributes attributes = attributes_for(op, parts);
        const NodePtr inner = of({parts[0], parts[1]}, attributes);
        const bool whole = chance(2);
        return of(whole ? Nodes{inner, of({parts[2], parts[3]}, attributes)} : Nodes{inner, parts[2]},
                  attributes);
    }

    NodePtr wildcard(const std::string& user, std::size_t position) {
        if (position == 1 && user.ends_with("crossentropy_labels")) return leaf({int32, {shape_.at(0)}}, 3);
        if (position == 1 && user == "scatter") return leaf({int32, {shape_.at(0)}}, 3);
        if (position == 0 && user == "scatter") return leaf({dtype_, shape_});
        if (position == 1 && user == "unpool")
            return make_node(find_op("pool_winner"), {leaf({float32, {2, 1, 4, 6}})}, pool_attributes());
        if (position == 0 && user == "unpool") return leaf({dtype_, pooled_});
        if (position == 0 && user == "where")
            return mask_ ? std::exchange(mask_, nullptr) : leaf({boolean, shape_});
        if (position == 0 && user == "conv")
            return leaf({float32, {between(1, 2), 1, between(5, 7), between(5, 7)}});
        if (position == 1 && user == "conv") return known_filters();
        if (position == 0 && user == "conv_grad_w") return convolved();
        if (position == 1 && user == "conv_grad_x") return leaf({dtype_, {1, between(1, 3), 3, 2}});
        if (const NodePtr special = in_a_form(user, position)) return special;
        if (!shape_.empty() && chance(3)) {
            Shape small = shape_;
            for (std::size_t i = 0; i < small.size(); ++i)
                if (i + 2 >= small.size() || chance(2)) small[i] = 1;
            return make_expand(leaf({dtype_, chance(3) ? Shape{} : small}), shape_, {});
        }
        return leaf({chance(12) ? float32 : dtype_, chance(12) ? Shape{} : shape_});
    }

    // Exponentials and reductions in the forms that stabilising rules look for.
    NodePtr in_a_form(const std::string& user, std::size_t position) {
        if (user == "mul" && position == 1 && !constants_ && !is_float(dtype_) && chance(3))
            return leaf({float32, {}});
        if (user == "sum" && chance(2)) return small_integers(chance(2));
        if (beside_ && (user == "exp" || (user == "sub" && position == 0)))
            return std::exchange(beside_, nullptr);
        if (user == "mul" && position == 0 && factor_) return std::exchange(factor_, nullptr);
        if (shape_.empty() || constants_ || (dtype_ != float32 && dtype_ != float64) || !chance(3))
            return nullptr;
        const auto make = [](const char* op, Nodes inputs) {
            return make_node(find_op(op), std::move(inputs), {}, {"user.cpp", 2});
        };
        const Type type{dtype_, shape_};
        const bool is_loss = user.find("crossentropy") != std::string::npos && position == 0;
        if (user == "log" || user == "log1p" || user == "log2" || user == "log10" || user == "neg" || is_loss)
            return exponential(2);
        if (user == "reciprocal" && chance(2)) return make(chance(2) ? "exp" : "cosh", {leaf(type)});
        if (user == "pow" && position == 0) return make(chance(2) ? "exp" : "sqr", {leaf(type)});
        if (user == "mul" && position == 1 && chance(3)) {
            const NodePtr exponent = leaf(type);
            factor_ = make("exp", {exponent});
            if (chance(2)) return make("exp", {make("neg", {chance(2) ? factor_ : exponent})});
            return make_constant(array({boolean, shape_}, Values::no_infinities, 0).as(dtype_));
        }
        if (user == "sqrt") return kept_or_not("sum", make("sqr", {leaf(type)}));
        if (user == "cast") return leaf({boolean, shape_});
        if (user == "div" && position == 1 && chance(3)) {
            Shape small = shape_;
            small.back() = 1;
            return make_expand(make("sqrt", {leaf({dtype_, small})}), shape_, {});
        }
        if (user == "div" && position == 1) {
            beside_ = leaf(type);
            const NodePtr e = make("exp", {beside_});
            if (chance(3)) {
                mask_ = leaf({boolean, shape_});
                return kept("sum", make("where", {mask_, e, number(0)}));
            }
            if (chance(2)) return kept("sum", e);
            return make("add", {e, chance(2) ? make("exp", {leaf(type)}) : scalar_node(dtype_, 1.5)});
        }
        if (user == "mul" && position == 1) {
            beside_ = leaf(type);
            return make("reciprocal", {kept("sum", make("exp", {beside_}))});
        }
        if (user == "sub" && position == 1) {
            beside_ = leaf(type);
            return kept(chance(2) ? "max" : "logsumexp", beside_);
        }
        return nullptr;
    }

    // Small integers, moved, cast, scaled and shifted: by numbers or by scalars that are known later.
    NodePtr small_integers(bool by_variables) {
        static const std::vector<DType> small = {int8, uint8, int16, uint16, boolean};
        const DType wide = pick(std::vector<DType>{float32, float64, int32, int64});
        const auto make = [](const char* op, Nodes inputs, Attributes attributes = {}) {
            return make_node(find_op(op), std::move(inputs), std::move(attributes), {"user.cpp", 2});
        };
        const auto moved = [&](const NodePtr& x) {
            const Op* op =
                find_op(pick(std::vector<std::string>{"reshape", "permute", "slice", "flip", "pad"}));
            return x->type.rank() > 0 && chance(4) ? make_node(op, {x}, attributes_for(op, {x}), {}) : x;
        };
        NodePtr x = make("cast", {moved(leaf({pick(small), shape_}))}, {{"dtype", wide}});
        for (std::int64_t i = between(1, 3); i > 0; --i) {
            const NodePtr by = by_variables && is_float(wide) && chance(2) ? leaf({wide, {}})
                               : is_float(wide) ? scalar_node(wide, chosen_number())
                                                : scalar_node(wide, static_cast<double>(between(-9, 9)));
            x = moved(x);
            switch (between(0, is_float(wide) ? 5 : 4)) {
                case 0: x = make("neg", {x}); break;
                case 1: x = make("mul", {x, by}); break;
                case 2: x = make("add", {by, x}); break;
                case 3: x = make("sub", {x, by}); break;
                case 4: x = make("sub", {by, x}); break;
                default: x = make("div", {x, by});
            }
        }
        return wide == int32 && chance(2)
                   ? make("cast", {x}, {{"dtype", pick(std::vector<DType>{float32, float64})}})
                   : x;
    }

    NodePtr exponential(int depth) {
        const Type type{dtype_, shape_};
        const auto make = [](const char* op, Nodes inputs, Attributes attributes = {}) {
            return make_node(find_op(op), std::move(inputs), std::move(attributes), {"user.cpp", 2});
        };
        switch (between(0, depth > 0 ? 8 : 2)) {
            case 0: return make("exp", {leaf(type)});
            case 1: return make("sigmoid", {leaf(type)});
            case 2: return make("softmax", {leaf(type)}, {{"axis", between(0, type.rank() - 1)}});
            case 3: return make("add", {exponential(depth - 1), exponential(depth - 1)});
            case 4: return make("mul", {exponential(depth - 1), scalar_node(dtype_, 0.5)});
            case 5: return make("div", {exponential(depth - 1), exponential(depth - 1)});
            case 6:
                return make("where",
                            {leaf({boolean, shape_}), exponential(depth - 1), scalar_node(dtype_, 0)});
            case 7: return make("sqrt", {exponential(depth - 1)});
            default: return kept_or_not(chance(2) ? "sum" : "mean", exponential(depth - 1));
        }
    }

    // A reduction over an axis, beside what it is of.
    NodePtr kept(const char* op, const NodePtr& of) {
        const std::int64_t axis = between(0, of->type.rank() - 1);
        const NodePtr made = make_node(find_op(op), {of}, {{"axes", std::vector<std::int64_t>{axis}}}, {});
        Shape ones = of->type.shape;
        ones[static_cast<std::size_t>(axis)] = 1;
        return make_expand(make_reshape(made, ones, {}), of->type.shape, {});
    }
    NodePtr kept_or_not(const char* op, const NodePtr& of) {
        const NodePtr all = kept(op, of);
        return all->op == expand_op() && chance(2) ? all->inputs[0] : all;
    }

    // One channel, and taps of which some are zero.
    NodePtr known_filters() {
        const std::int64_t filters = between(1, 3), high = between(1, 3), wide = between(1, 3);
        std::vector<float> taps;
        for (std::int64_t k = 0; k < filters * high * wide; ++k)
            taps.push_back(static_cast<float>(between(-2, 2)) / 2);
        return make_constant(Array(taps).reshaped({filters, 1, high, wide}), {});
    }
    Attributes geometry() {
        using Pair = std::vector<std::int64_t>;
        const auto two = [&](std::int64_t low, std::int64_t high) {
            const std::int64_t first = between(low, high);
            return Pair{first, between(low, high)};
        };
        return {{"stride", two(1, 3)}, {"dilation", two(1, 2)}, {"pad", two(0, 2)}, {"flip", chance(2)}};
    }

    // An image whose convolution, of attributes that are drawn here, has the shape `pooled_`.
    NodePtr convolved() {
        using Pair = std::vector<std::int64_t>;
        Pair kernel, stride, dilation, pad;
        Shape shape{pooled_.at(0), between(1, 3)};
        for (std::size_t i = 2; i < 4; ++i) {
            kernel.push_back(between(1, 3));
            stride.push_back(between(1, 2));
            dilation.push_back(between(1, 2));
            pad.push_back(between(0, 2));
            const std::int64_t span = (kernel.back() - 1) * dilation.back() + 1;
            shape.push_back((pooled_.at(i) - 1) * stride.back() + span - 2 * pad.back() +
                            between(0, stride.back() - 1));
        }
        conv_ = {{"kernel", kernel},
                 {"stride", stride},
                 {"dilation", dilation},
                 {"pad", pad},
                 {"flip", chance(2)}};
        return leaf({dtype_, shape});
    }

    // Of the image whose convolution with these filters has the gradient's shape.
    Attributes image_attributes(const Nodes& inputs) {
        using Pair = std::vector<std::int64_t>;
        Pair stride, dilation, pad;
        std::vector<Int> lengths;
        for (std::size_t i = 2; i < 4; ++i) {
            stride.push_back(between(1, 2));
            dilation.push_back(between(1, 2));
            pad.push_back(between(0, 2));
            const Int span = (inputs[1]->type.shape.at(i) - 1) * dilation.back() + 1;
            lengths.push_back((inputs[0]->type.shape.at(i) - 1) * stride.back() + span - 2 * pad.back() +
                              between(0, stride.back() - 1));
        }
        return {{"stride", stride},  {"dilation", dilation}, {"pad", pad},
                {"flip", chance(2)}, {"height", lengths[0]}, {"width", lengths[1]}};
    }

    NodePtr number(double value, bool as_boolean = false) {
        const NodePtr scalar = scalar_node(as_boolean ? boolean : dtype_, value);
        if (!chance(4)) return scalar;
        return make_constant(filled(constant_value(scalar), static_dims(shape_)));
    }

    double chosen_number() {
        return pick(std::vector<double>{0, -0.0, 1, -1, 2, 0.5, 4, -8, 3, 100, 128, 0.1, -0.25, 1024});
    }

    static Array filled(const Array& scalar, const Dims& shape) {
        Array r(scalar.dtype(), shape);
        const auto width = static_cast<std::size_t>(bytes_of(scalar.dtype()));
        for (std::int64_t i = 0; i < r.size(); ++i)
            std::memcpy(static_cast<char*>(r.mutable_data()) + static_cast<std::size_t>(i) * width,
                        scalar.data(), width);
        return r;
    }

    NodePtr any_op(OpKind kind) {
        if (kind == OpKind::leaf) return number(chosen_number());
        std::vector<const Op*> ops;
        for (const Op* op : all_ops())
            if (op->kind == kind && op->arity >= 1 && op->evaluate) ops.push_back(op);
        const Op* op = pick(ops);
        Nodes inputs;
        for (int i = 0; i < op->arity; ++i) inputs.push_back(wildcard(op->name, static_cast<std::size_t>(i)));
        const Attributes attributes = attributes_for(op, inputs);
        return make_node(op, inputs, attributes, {"user.cpp", 2});
    }

    Shape other_shape(const Shape& shape) {
        switch (between(0, 3)) {
            case 0: return shape;
            case 1: return {count_of(shape)};
            case 2: return {1, count_of(shape), 1};
            default: break;
        }
        Shape reversed(shape.rbegin(), shape.rend());
        return reversed;
    }

    Shape larger_shape(Shape shape) {
        for (Int& length : shape)
            if (length.is(1) && chance(2)) length = between(1, 3);
        if (shape.size() < 3 && chance(2)) shape.insert(shape.begin(), Int(between(1, 2)));
        return shape;
    }

    Attributes slice_attributes(const Shape& shape) {
        std::vector<Int> start, count;
        std::vector<std::int64_t> step;
        const bool all = chance(4);
        for (const Int& length : shape) {
            const std::int64_t n = length.constant(), from = all || n == 0 ? 0 : between(0, n - 1);
            const bool back = !all && chance(3);
            const std::int64_t by = all ? 1 : between(1, 2), room = back ? from + 1 : n - from;
            start.emplace_back(from);
            step.push_back(back ? -by : by);
            count.emplace_back(all || n == 0 ? n : between(0, (room + by - 1) / by));
        }
        return {{"start", start}, {"count", count}, {"step", step}};
    }

    // Places side by side, one after another, now and then anywhere; all of the result, or with zeros around.
    Attributes place_attributes(const Shape& shape) {
        if (shape.empty()) throw std::runtime_error("place_slice needs an axis");
        const std::size_t axis = static_cast<std::size_t>(place_axis_) % shape.size();
        std::vector<Int> start(shape.size(), Int(0));
        Shape whole = shape;
        start[axis] = chance(6) ? Int(between(0, 2)) : placed_;
        placed_ = start[axis] + shape[axis];
        if (place_parts_ > 1) whole[axis] = shape[axis] * place_parts_ + places_beyond_;
        if ((whole[axis] - placed_).range().low < 0) throw std::runtime_error("a place beyond the end");
        return {{"start", start}, {"step", std::vector<std::int64_t>(shape.size(), 1)}, {"shape", whole}};
    }

    Attributes pool_attributes() {
        using Pair = std::vector<std::int64_t>;
        const std::int64_t most = chance(3) ? 5 : 3, h = between(1, most), w = between(1, most);
        const std::int64_t apart = chance(3) ? 1 : 3;
        return {{"window", Pair{h, w}},
                {"stride", Pair{between(1, apart), between(1, apart)}},
                {"pad", Pair{between(0, h - 1), between(0, w - 1)}}};
    }

    template <class T>
    T element(Values values, std::int64_t most, double usual) {
        if (most > 0) return T(static_cast<float>(between(0, most - 1)));
        if constexpr (std::is_same_v<T, bool>) {
            return chance(2);
        } else if constexpr (std::is_integral_v<T>) {
            if (chance(8)) return chance(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
            return static_cast<T>(between(std::is_signed_v<T> ? -7 : 0, 7));
        } else {
            if (values == Values::everything && chance(10)) {
                static const std::vector<double> extremes = {INFINITY, -INFINITY, 3e38, -3e38,
                                                             1e-38,    88.8,      -104, 710};
                return T(static_cast<float>(pick(extremes)));
            }
            switch (between(0, 9)) {
                case 0: return T(0.0F);
                case 1: return T(-0.0F);
                case 2: return chance(3) ? T(std::numeric_limits<float>::quiet_NaN()) : T(1.0F);
                case 3: return T(static_cast<float>(between(-3, 3)));
                default: break;
            }
            return T(static_cast<float>(std::uniform_real_distribution<double>(-usual, usual)(random_)));
        }
    }

    std::mt19937 random_;
    DType dtype_ = float32;
    Shape shape_, pooled_;
    Attributes conv_;  // of the convolution whose image was made last
    bool constants_ = false;
    NodePtr factor_;         // of a product, beside the other factor
    NodePtr beside_, mask_;  // what the other operand has reduced, and under which condition
    std::int64_t place_axis_ = 0, place_parts_ = 2, places_beyond_ = 0;
    Int placed_;  // where the last place ends
    std::vector<std::pair<NodePtr, std::int64_t>> leaves_;
    std::map<const PatternNode*, NodePtr> bound_;
};

// The sum of many rows of a few columns, of which some are repeated for each row or are part of longer ones.
inline NodePtr sum_of_columns(Instantiator& random, const std::function<NodePtr(Shape)>& leaf) {
    const std::int64_t rows = random.between(512, 540), columns = random.between(2, 5);
    Shape shape{Int(rows), Int(columns)};
    std::vector<std::int64_t> axes{0, 1};
    if (random.chance(2)) {
        shape.insert(shape.begin(), Int(2));
        axes = random.chance(2) ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{0, 1, 2};
    }
    Shape longer = shape;
    longer.back() = columns + 1;
    const int last = static_cast<int>(shape.size()) - 1;
    const NodePtr part = make_slice(leaf(longer), last, random.between(0, 1), columns, 1, {});
    const NodePtr repeated = make_expand(leaf(Shape{Int(columns)}), shape, {});
    const NodePtr terms = random.chance(3) ? part
                                           : make_node(find_op(random.chance(2) ? "sub" : "mul"),
                                                       {random.chance(2) ? leaf(shape) : part, repeated});
    return make_node(find_op("sum"), {terms}, {{"axes", axes}});
}

// What a rule named sum-of-stack, max-of-stack and so on replaces.
inline NodePtr reduced_stack(const std::string& rule, Instantiator& random,
                             const std::function<NodePtr(Shape)>& leaf) {
    const auto axis = random.between(0, 1);
    const std::int64_t count = random.between(17, 19), length = random.between(0, 3);
    Nodes parts;
    for (std::int64_t k = 0; k < count; ++k)
        parts.push_back(leaf(axis == 0 ? Shape{1, length} : Shape{length, 1}));
    const NodePtr whole = make_node(find_op("concat"), parts, {{"axis", axis}});
    const char* const maps[] = {"add", "mul", "sub", "maximum"};
    const NodePtr x = random.chance(2)
                          ? whole
                          : make_node(find_op(maps[random.between(0, 3)]), {whole, leaf(whole->type.shape)});
    const bool both = random.chance(3) && (length > 0 || rule == "sum-of-stack");
    const std::string op = rule.substr(0, rule.find('-'));
    return make_node(find_op(op == "product" ? "prod" : op), {x},
                     {{"axes", both ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{axis}}});
}

}  // namespace bitale::fuzz
