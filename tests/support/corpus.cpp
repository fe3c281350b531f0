#include "tests/support/corpus.h"

#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "tests/support/numerics.h"

namespace bitale::test {

namespace {

const std::vector<DType> dtypes = {boolean, int8,   int16,   int32,    int64,   uint8,  uint16,
                                   uint32,  uint64, float16, bfloat16, float32, float64};
const std::vector<DType> computing = {boolean, int8,   int16,  int32,   int64,  uint8,
                                      uint16,  uint32, uint64, float32, float64};

class Builder {
  public:
    Builder(std::string name, std::uint64_t seed) : random_(seed) { part_.name = std::move(name); }

    Expr input(DType dtype, const Dims& shape, double low = -3, double high = 3) {
        return take(bitale::input(dtype, static_cast<int>(shape.size()), next_name()),
                    random_array(dtype, shape, random_, low, high));
    }
    Expr special(DType dtype, const Dims& shape, int stride) {
        return take(bitale::input(dtype, static_cast<int>(shape.size()), next_name()),
                    special_array(dtype, shape, random_, stride));
    }
    // Known when the graph is built.
    Expr fixed(DType dtype, const Dims& shape) {
        return take(bitale::input(dtype, shape, next_name()), random_array(dtype, shape, random_));
    }
    Expr value(std::string name, const Array& array) {
        return take(bitale::input(array.dtype(), array.rank(), std::move(name)), array);
    }
    void add(std::string name, const Expr& y) {
        part_.names.push_back(std::move(name));
        part_.outputs.push_back(y);
    }
    CorpusPart part() && { return std::move(part_); }

  private:
    std::string next_name() const { return fmt::format("x{}", part_.inputs.size()); }
    Expr take(const Expr& x, Array value) {
        part_.inputs.push_back(x);
        part_.arguments.push_back(std::move(value));
        return x;
    }
    Random random_;
    CorpusPart part_;
};

CorpusPart elementwise_part(DType dtype) {
    Builder b(fmt::format("elementwise_{}", name_of(dtype)), static_cast<std::uint64_t>(dtype) + 1);
    const Dims shape{17, 43};
    const std::vector<Expr> x = {b.special(dtype, shape, 0), b.special(dtype, shape, 1),
                                 b.special(dtype, shape, 2)};
    const Expr condition = b.special(boolean, shape, 1);
    for (const Op* op : elementwise_ops()) {
        if (!computes_on(op, dtype)) continue;
        std::vector<Expr> operands(x.begin(), x.begin() + op->arity);
        if (op->name == "where") operands[0] = condition;
        b.add(op->name, elementwise(op, operands, Where::current()));
    }
    return std::move(b).part();
}

CorpusPart casts() {
    Builder b("casts", 1);
    for (const DType from : dtypes) {
        const Expr x = b.special(from, {300}, 0);
        for (const DType to : dtypes) b.add(fmt::format("{} to {}", name_of(from), name_of(to)), cast(x, to));
    }
    return std::move(b).part();
}

CorpusPart views() {
    Builder b("views", 2);
    const Expr s = b.value("s", Array(std::int64_t{2}));
    const Expr i = b.value("i", Array(std::vector<std::int64_t>{4, 0, 4, 1}));
    for (const DType dtype : dtypes) {
        const Expr x = b.input(dtype, {5, 7});
        const auto add = [&](const char* what, const Expr& y) {
            b.add(fmt::format("{} {}", name_of(dtype), what), y);
        };
        add("transpose", transpose(x));
        add("reshape", reshape(x, {7, 5}));
        add("flip", flip(x, 1));
        add("steps", x[{Slice{.step = -2}, Slice{1, 6, 2}}]);
        add("pad", pad(x, {{1, 2}, {0, 1}}, 1));
        add("concatenate", concatenate({x, x, flip(x, 0)}, 1));
        add("gather", x[i]);
        add("rows", rows(x, s, 3));
        add("moving slice", x[Slice{s, s + 4}]);
        add("number", x[{s, -1}]);
        add("broadcast", broadcast_to(expand_dims(x, 1), {5, 2, 7}));
    }
    return std::move(b).part();
}

CorpusPart reductions(DType dtype) {
    Builder b(fmt::format("reductions_{}", name_of(dtype)), 3);
    using Reduce = Expr (*)(const Expr&, const Axes&, ReduceOptions, Where);
    const std::pair<const char*, Reduce> list[] = {{"sum", sum},       {"prod", prod},     {"max", max},
                                                   {"min", min},       {"any", any},       {"all", all},
                                                   {"argmax", argmax}, {"argmin", argmin}, {"mean", mean}};
    const Expr x = b.input(dtype, {37, 21}, -1, 1);
    for (const auto& [name, reduce] : list)
        for (const Axes& axes : std::vector<Axes>{{}, {0}, {1}})
            b.add(axes.empty() ? name : fmt::format("{} over axis {}", name, axes[0]),
                  reduce(x, axes, {}, Where::current()));
    return std::move(b).part();
}

CorpusPart linear() {
    Builder b("linear", 4);
    for (const DType dtype : {float32, float64}) {
        const Expr x = b.input(dtype, {19, 33}), w = b.input(dtype, {33, 5}), v = b.input(dtype, {33}),
                   t = b.input(dtype, {2, 7, 19});
        b.add("matrix matrix", dot(x, w));
        b.add("matrix vector", dot(x, v));
        b.add("vector vector", dot(v, v));
        b.add("transposed", dot(transpose(w), transpose(x)));
        b.add("rank 3", dot(t, x));
        const std::vector<Expr> gradients = grad(sum(sqr(dot(x, w))), {x, w});
        b.add("gradient x", gradients[0]);
        b.add("gradient w", gradients[1]);
    }
    const Expr bytes = b.input(int8, {12, 64}, -128, 127), w = b.input(float32, {64, 10});
    b.add("bytes", dot((cast(bytes, float32) - 3) / 128, w));
    return std::move(b).part();
}

CorpusPart convolutions(DType dtype) {
    Builder b(fmt::format("convolutions_{}", name_of(dtype)), 5);
    const ConvOptions variants[] = {{},
                                    {.border_mode = half},
                                    {.border_mode = full, .filter_flip = false},
                                    {.border_mode = 1, .subsample = 2},
                                    {.subsample = {1, 2}, .dilation = {2, 1}}};
    int number = 0;
    for (const ConvOptions& options : variants) {
        const Expr x = b.input(dtype, {2, 3, 9, 8}), w = b.fixed(dtype, {4, 3, 3, 3});
        const Expr y = conv2d(x, w, options);
        const std::vector<Expr> gradients = grad(sum(sqr(y)), {x, w});
        b.add(fmt::format("forward {}", number), y);
        b.add(fmt::format("data gradient {}", number), gradients[0]);
        b.add(fmt::format("weight gradient {}", number++), gradients[1]);
    }
    const PoolOptions pools[] = {{}, {.stride = 1}, {.stride = 2, .pad = 1}};
    for (const PoolOptions& options : pools) {
        const Expr x = b.input(dtype, {2, 3, 9, 8});
        const Expr y = max_pool(x, 3, options);
        b.add(fmt::format("pool {}", number), y);
        b.add(fmt::format("pool gradient {}", number++), grad(sum(sqr(y)), x));
    }
    if (dtype == float32) {
        const Expr bytes = b.input(uint8, {3, 1, 12, 12}, 0, 255), w = b.fixed(float32, {4, 1, 3, 3});
        const Expr y =
            relu(max_pool(conv2d((cast(bytes, float32) - 128) / 128, w, {.border_mode = half}), 2));
        b.add("bytes", y);
        b.add("bytes, weight gradient", grad(sum(sqr(y)), w));
    }
    return std::move(b).part();
}

CorpusPart losses() {
    Builder b("losses", 6);
    const Expr labels = b.input(int32, {21}, 0, 9);
    for (const DType dtype : {float32, float64}) {
        const Expr x = b.input(dtype, {21, 10}), target = softmax(b.input(dtype, {21, 10}));
        const auto add = [&](const char* name, const Expr& y) {
            b.add(fmt::format("{} {}", name_of(dtype), name), y);
            b.add(fmt::format("{} {}, gradient", name_of(dtype), name), grad(sum(y * y), x));
        };
        add("softmax", softmax(x));
        add("softmax over columns", softmax(x, 0));
        add("log_softmax", log_softmax(x));
        add("crossentropy of labels", categorical_crossentropy(softmax(x), labels));
        add("dense crossentropy", categorical_crossentropy(softmax(x), target));
        add("softmax_crossentropy", softmax_crossentropy(x, labels));
        add("binary_crossentropy", binary_crossentropy(sigmoid(x), target));
    }
    b.add("one_hot", one_hot(labels, 10));
    return std::move(b).part();
}

CorpusPart random_numbers() {
    Builder b("random", 7);
    RandomStream stream(5);
    const Expr x = b.input(float32, {13, 37});
    b.add("uniform", stream.uniform({100, 7}, -1, 2));
    b.add("normal", stream.normal({311}, 1, 3));
    const Expr y = dropout(x, 0.3, stream);
    b.add("dropout", y);
    b.add("dropout gradient", grad(sum(sqr(y)), x));
    return std::move(b).part();
}

}  // namespace

Function CorpusPart::build(const std::string& device) const {
    std::vector<Input> list;
    for (const Expr& x : inputs) list.emplace_back(x);
    // Functions of one part are compared, so none may move the other's random stream on.
    return function(
        list, outputs,
        {.name = name, .device = device, .on_unused_input = OnUnused::ignore, .hold_streams = true});
}

std::vector<CorpusPart> kernel_corpus() {
    std::vector<CorpusPart> parts;
    for (const DType dtype : computing) parts.push_back(elementwise_part(dtype));
    parts.push_back(casts());
    parts.push_back(views());
    for (const DType dtype : {boolean, int8, uint16, int64, float16, float32, float64})
        parts.push_back(reductions(dtype));
    parts.push_back(linear());
    parts.push_back(convolutions(float32));
    parts.push_back(convolutions(float64));
    parts.push_back(losses());
    parts.push_back(random_numbers());
    for (CorpusPart& part : parts) {
        const std::size_t end = part.name.find('_');
        const std::string dtype = end == std::string::npos ? "" : part.name.substr(end + 1);
        part.typical = dtype.empty() || dtype == "float32" || dtype == "int8";
    }
    return parts;
}

}  // namespace bitale::test
