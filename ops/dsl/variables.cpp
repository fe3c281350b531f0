// Free variables and constants.
#include "bitale/expr.h"
#include "graph/base/text.h"
#include "graph/ir/node.h"
#include "ops/dsl/build.h"

namespace bitale {

namespace {

Expr variable(DType dtype, Shape shape, std::string name, Where where) {
    return Expr(make_input({dtype, std::move(shape)}, std::move(name), where));
}

Int unknown_length(const std::string& name, int axis) {
    return Int::symbol((name.empty() ? "d" : printable(name) + ".") + std::to_string(axis));
}

}  // namespace

Expr input_of_rank(DType dtype, std::int64_t rank, std::string name, Where where) try {
    constexpr std::int64_t most = 64;  // as NumPy has
    if (rank < 0)
        throw ShapeError(where, "input " + in_quotes(name) + ": the rank must be at least 0, but is " +
                                    std::to_string(rank) + "; for a vector of unknown length write {-1}");
    if (rank > most)
        throw ShapeError(where, "input " + in_quotes(name) + ": a rank of " + std::to_string(rank) +
                                    ", where arrays have at most " + std::to_string(most) +
                                    " axes; a length is written in braces: {" + std::to_string(rank) + "}");
    Shape shape;
    for (int i = 0; i < rank; ++i) shape.push_back(unknown_length(name, i));
    return variable(dtype, std::move(shape), std::move(name), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr input(DType dtype, const Dims& dims, std::string name, Where where) try {
    Shape shape;
    for (const std::int64_t length : dims) {
        if (length < -1)
            throw ShapeError(where, "input " + in_quotes(name) + ": " + text_of(dims) +
                                        " is no shape; lengths are 0 or more, or -1 for an unknown one");
        shape.push_back(length < 0 ? unknown_length(name, static_cast<int>(shape.size())) : Int(length));
    }
    return variable(dtype, std::move(shape), std::move(name), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr scalar(std::string name, DType dtype, Where where) { return input(dtype, 0, std::move(name), where); }
Expr vector(std::string name, DType dtype, Where where) { return input(dtype, 1, std::move(name), where); }
Expr matrix(std::string name, DType dtype, Where where) { return input(dtype, 2, std::move(name), where); }
Expr tensor3(std::string name, DType dtype, Where where) { return input(dtype, 3, std::move(name), where); }
Expr tensor4(std::string name, DType dtype, Where where) { return input(dtype, 4, std::move(name), where); }
Expr iscalar(std::string name, Where where) { return input(DType::int32, 0, std::move(name), where); }
Expr ivector(std::string name, Where where) { return input(DType::int32, 1, std::move(name), where); }
Expr imatrix(std::string name, Where where) { return input(DType::int32, 2, std::move(name), where); }
Expr lscalar(std::string name, Where where) { return input(DType::int64, 0, std::move(name), where); }
Expr lvector(std::string name, Where where) { return input(DType::int64, 1, std::move(name), where); }
Expr constant(const Array& value, Where where) { return Expr(value, where); }

}  // namespace bitale
