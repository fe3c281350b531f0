// Scans and orders: sums up to each place, by rows and by columns, their gradients; rows that are sorted, and
// the greatest of them.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

GRAPH(cumsum_rows_and_columns) {
    const Expr x = b.floats({b.size(2048, 21), b.size(2048, 35)}, "x");
    b.output(cumsum(x, 1), "rows");
    b.output(cumsum(x, 0), "columns");
    b.output(cumsum(x, 1, {.exclusive = true, .reverse = true}), "rows from the end");
    b.output(cumsum(x, 0, {.reverse = true}), "columns from the end");
}

GRAPH(cumsum_unknown) {
    const Expr x = b.floats({unknown(b.size(100, 5)), unknown(b.size(300, 19)), unknown(b.size(70, 17))},
                            "x"),
               bytes = b.bytes({unknown(b.size(1000, 90))}, "bytes");
    for (const int axis : {0, 1, 2}) b.output(cumsum(x * 0.5, axis), "along " + std::to_string(axis));
    b.output(cumsum(bytes, 0), "of bytes");
}

GRAPH(cumprod_gradient) {
    const Expr x = b.floats({b.size(200, 8), b.size(64, 9)}, "x", {0.5, 1.5});
    const Expr y = cumprod(x, 1);
    b.output(y, "products");
    b.output(grad(sum(sqr(y)), x), "gradient");
    b.output(grad(sum(sqr(cumprod(x, 0))), x), "gradient of columns");
}

GRAPH(logcumsumexp_gradient) {
    const Expr x = b.floats({b.size(300, 11), b.size(500, 20)}, "x", {-30, 30});
    const Expr y = logcumsumexp(x, 1);
    b.output(y, "values");
    b.output(grad(mean(y), x), "gradient");
}

GRAPH(sort_rows) {
    const Expr x = b.floats({b.size(4096, 13), b.size(1000, 70)}, "x");
    b.output(sort(x), "in order");
    b.output(argsort(x, 0, {.descending = true}), "columns");
}

GRAPH(sort_unknown) {
    const Expr x = b.floats({unknown(b.size(100, 12)), unknown(b.size(3000, 90))}, "x"),
               labels = b.labels(unknown(b.size(5000, 100)), 10, "labels");
    b.output(sort(tanh(x)), "in order");
    b.output(argsort(labels), "labels");
    b.output(grad(sum(sort(x, 1) * sort(x, 1)), x), "gradient");
}

// The greatest of each row, and what they weigh.
GRAPH(topk_gate) {
    const Expr x = b.floats({unknown(b.size(4096, 30)), b.size(512, 100)}, "x");
    const TopK best = topk(x, 8);
    const Expr weights = softmax(best.values);
    b.output(weights, "weights");
    b.output(best.positions, "positions");
    b.output(grad(sum(weights * weights), x), "gradient");
}
