// Axes that turn out empty, at the call or when an expression is written: maxima of nothing are errors,
// everything else has its value, the same on every device.
#include <string>
#include <utility>
#include <vector>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

enum class Outcome { value, shape_error, index_error };

// What the form is of matrices [3, 0], of one of no rows and three columns, and of one of neither.
struct Form {
    std::string name;
    Expr result;
    Outcome of_no_columns = Outcome::value, of_no_rows = Outcome::value, of_neither = Outcome::value;
};

struct Inputs {
    Expr x, t, labels;
};

constexpr Outcome value = Outcome::value, shape_error = Outcome::shape_error,
                  index_error = Outcome::index_error;

std::vector<Form> forms_of(const Inputs& inputs) {
    const Expr &x = inputs.x, &t = inputs.t, &labels = inputs.labels;
    const ReduceOptions kept{.keepdims = true};
    const Expr loss = softmax_crossentropy(x, labels), dense = softmax_crossentropy(x, t),
               of_softmax = categorical_crossentropy(softmax(x), labels),
               dense_of_softmax = categorical_crossentropy(softmax(x), t);
    return {
        {"softmax", softmax(x)},
        {"softmax of columns", softmax(x, 0)},
        {"log_softmax", log_softmax(x)},
        {"log_softmax of columns", log_softmax(x, 0)},
        {"log of softmax", log(softmax(x))},
        {"softmax by hand", exp(x) / sum(exp(x), {1}, kept)},
        {"logsumexp", logsumexp(x, {1})},
        {"log of the sum", log(sum(exp(x), {1}))},
        {"logsumexp of all", logsumexp(x)},
        {"gradient of softmax", grad(sum(softmax(x) * t), x)},
        {"gradient of log_softmax", grad(sum(log_softmax(x) * t), x)},
        {"gradient of logsumexp", grad(sum(logsumexp(x, {1})), x)},
        {"gradient of logsumexp of all", grad(logsumexp(x), x)},
        {"dense crossentropy", categorical_crossentropy(x, t)},
        {"gradient of it", grad(mean(categorical_crossentropy(x, t)), x)},
        {"dense crossentropy of logits", dense},
        {"gradient of it with respect to the logits", grad(mean(dense), x)},
        {"gradient of it with respect to the targets", grad(mean(dense), t)},
        {"dense crossentropy of a softmax", dense_of_softmax},
        {"gradient of it by way of a softmax", grad(mean(dense_of_softmax), x)},
        {"binary crossentropy", binary_crossentropy(sigmoid(x), t)},
        {"gradient of it by way of a sigmoid", grad(sum(binary_crossentropy(sigmoid(x), t)), x)},
        {"sum", sum(x, {1})},
        {"prod", prod(x, {1})},
        {"mean", mean(x, {1})},
        {"gradient of prod", grad(sum(prod(x, {1})), x)},
        {"any", any(x > 0, {1})},
        {"all", all(x > 0, {1})},
        {"norm", sqrt(sum(sqr(x), {1}))},
        {"gradient of the norm", grad(sqrt(sum(sqr(x))), x)},
        {"centred", x - mean(x, {1}, kept)},
        {"max", max(x, {1}), shape_error, value, shape_error},
        {"max of columns", max(x, {0}), value, shape_error, shape_error},
        {"min", min(x, {1}), shape_error, value, shape_error},
        {"max of all", max(x), shape_error, shape_error, shape_error},
        {"argmax", argmax(x, {1}), shape_error, value, shape_error},
        {"argmin of all", argmin(x), shape_error, shape_error, shape_error},
        {"gradient of max", grad(sum(max(x, {1})), x), shape_error, value, shape_error},
        {"softmax by hand, shifted", exp(x - max(x, {1}, kept)) / sum(exp(x - max(x, {1}, kept)), {1}, kept),
         shape_error, value, shape_error},
        {"crossentropy", categorical_crossentropy(x, labels), index_error},
        {"crossentropy of logits", loss, index_error},
        {"gradient of crossentropy of logits", grad(mean(loss), x), index_error},
        {"crossentropy of a softmax", of_softmax, index_error},
        {"gradient of crossentropy of a softmax", grad(mean(of_softmax), x), index_error},
    };
}

struct Lengths {
    const char* name;
    std::int64_t rows, columns;
    Outcome Form::*outcome;
};
constexpr Lengths all_lengths[] = {{"no columns", 3, 0, &Form::of_no_columns},
                                   {"no rows", 0, 3, &Form::of_no_rows},
                                   {"neither", 0, 0, &Form::of_neither}};

std::vector<Array> arguments_of(const Lengths& c) {
    return {Array(float32, {c.rows, c.columns}), Array(float32, {c.rows, c.columns}), Array(int32, {c.rows})};
}

// For all lengths, or for those of each call.
Function compiled(const Inputs& inputs, const std::vector<Expr>& results, const std::string& device,
                  bool specialise = false) {
    FunctionOptions options;
    options.device = device;
    options.specialise = specialise;
    options.on_unused_input = OnUnused::ignore;
    return function({inputs.x, inputs.t, inputs.labels}, results, options);
}

template <class F>
Outcome outcome_of(F&& call) {
    try {
        call();
    } catch (const ShapeError& e) {
        CHECK_THAT(e.what(), ContainsSubstring("empty_test.cpp:"));
        return Outcome::shape_error;
    } catch (const IndexError& e) {
        CHECK_THAT(e.what(), ContainsSubstring("empty_test.cpp:"));
        return Outcome::index_error;
    }
    return Outcome::value;
}

// Those with values in one function, as compiling is what costs.
void require_values(const Inputs& inputs, const std::vector<Form>& forms, const Lengths& c) {
    std::vector<Form> with_value;
    std::vector<Expr> results;
    for (const Form& form : forms)
        if (form.*c.outcome == Outcome::value) {
            with_value.push_back(form);
            results.push_back(form.result);
        }
    std::vector<Array> expected;
    for (const std::string& device : all_devices())
        for (const bool specialise : {false, true}) {
            INFO(c.name << ", " << device << (specialise ? ", for these lengths" : ""));
            Function f = compiled(inputs, results, device, specialise);
            const Results got = f.call(arguments_of(c));
            for (std::size_t i = 0; i < results.size(); ++i) {
                INFO(with_value[i].name);
                if (expected.size() == i) expected.push_back(got[i]);
                CHECK(difference(got[i], expected[i], {.ulps = 1}) == "");
            }
        }
}

}  // namespace

TEST_CASE("along axes that turn out empty every device says the same", "[core][runtime]") {
    const Inputs inputs{matrix("x"), matrix("t"), ivector("labels")};
    const std::vector<Form> forms = forms_of(inputs);
    for (const Lengths& c : all_lengths) require_values(inputs, forms, c);
    for (const std::string& device : all_devices())
        for (const Form& form : forms) {
            if (form.of_no_columns == value && form.of_no_rows == value) continue;
            Function f = compiled(inputs, {form.result}, device),
                     of_each_call = compiled(inputs, {form.result}, device, true);
            for (const Lengths& c : all_lengths) {
                INFO(form.name << ", " << c.name << ", " << device);
                CHECK(outcome_of([&] { f.call(arguments_of(c)); }) == form.*c.outcome);
                if (device != "cpu") continue;
                CHECK(outcome_of([&] { of_each_call.call(arguments_of(c)); }) == form.*c.outcome);
            }
        }
}

TEST_CASE("along axes that are known to be empty every device says the same", "[core][runtime]") {
    for (const Lengths& c : all_lengths) {
        const Inputs inputs{input(float32, Dims{c.rows, c.columns}, "x"),
                            input(float32, Dims{c.rows, c.columns}, "t"),
                            input(int32, Dims{c.rows}, "labels")};
        const Expr &x = inputs.x, &t = inputs.t, &labels = inputs.labels;
        const std::vector<Form> forms = {
            {"softmax", softmax(x)},
            {"log_softmax", log_softmax(x)},
            {"softmax of columns", softmax(x, 0)},
            {"logsumexp", logsumexp(x, {1})},
            {"gradient of logsumexp", grad(sum(logsumexp(x, {1})), x)},
            {"gradient of softmax", grad(sum(softmax(x) * t), x)},
            {"dense crossentropy of logits", softmax_crossentropy(x, t)},
            {"gradient of it", grad(mean(softmax_crossentropy(x, t)), x)},
            {"dense crossentropy of a softmax", categorical_crossentropy(softmax(x), t)},
            {"crossentropy of logits", softmax_crossentropy(x, labels), index_error},
            {"gradient of crossentropy of logits", grad(mean(softmax_crossentropy(x, labels)), x),
             index_error},
            {"crossentropy", categorical_crossentropy(x, labels), index_error},
        };
        require_values(inputs, forms, c);
        for (const std::string& device : all_devices())
            for (const Form& form : forms) {
                if (form.of_no_columns == value) continue;
                INFO(form.name << ", " << c.name << ", " << device);
                CHECK(outcome_of([&] { compiled(inputs, {form.result}, device).call(arguments_of(c)); }) ==
                      form.*c.outcome);
            }
        if (c.columns == 0) {
            CHECK_THROWS_AS(max(x, {1}), ShapeError);
            CHECK_THROWS_AS(argmin(x, {1}), ShapeError);
        }
    }
}
