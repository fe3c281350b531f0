// Programs as newcomers write them, with the public header and nothing else, do what their authors expected.
#include <cstdlib>
#include <sstream>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"

namespace bitale {
namespace {

const std::string mnist = BITALE_SOURCE_DIR "/data/mnist";

Finished run(const std::string& program, const std::string& arguments) {
    const Finished f = run_program(NEWCOMER "/" + program + " " + arguments);
    INFO(f.output);
    CHECK(f.status == 0);
    return f;
}

// The number behind the last occurrence of a text.
double number_after(const std::string& text, const std::string& before) {
    INFO(text);
    const std::size_t at = text.rfind(before);
    REQUIRE(at != std::string::npos);
    return std::strtod(text.c_str() + at + before.size(), nullptr);
}

TEST_CASE("a newcomer's logistic regression, its best model and its predictions") {
    const std::string output = run("logistic", mnist + " " + temporary_file("best_model.npz")).output;
    CHECK(number_after(output, "epoch ") == 5);
    CHECK(number_after(output, "validation error ") < 10);
    CHECK(number_after(output, "test error ") < 10.5);
    std::istringstream predicted(output.substr(output.find("predicted [") + 11)),
        labels(output.substr(output.find("labels    [") + 11));
    int right = 0;
    for (int k = 0, p = 0, l = 0; k < 10; ++k) {
        REQUIRE((predicted >> p && labels >> l));
        right += p == l;
    }
    CHECK(right >= 8);
    CHECK(number_after(output, "]\n") <= 3);  // kernels a step
}

TEST_CASE("a newcomer's multilayer perceptron") {
    CHECK(number_after(run("mlp", mnist).output, "validation error ") < 9);
}

TEST_CASE("a newcomer's networks for images of the shape of CIFAR-10") {
    const std::string output = run("cifar", "").output;
    CHECK(number_after(output, "pooled_labels: error ") < 5);
    CHECK(number_after(output, "overlapping_one_hot: error ") < 5);
}

TEST_CASE("a newcomer's whitening, by hand and by zca") {
    const std::string output = run("whitening", "").output;
    CHECK(number_after(output, "difference ") < 1e-3);
    CHECK(number_after(output, "diagonal off by ") < 0.01);
    CHECK(number_after(output, "others by ") < 0.01);
}

TEST_CASE("a newcomer's Keras network, with a line of progress") {
    const std::string output = run("keras", mnist + " 960").output;
    CHECK(output.find("320/960 - loss: ") == 0);
    CHECK(number_after(output, "960/960 - loss: ") < 2.2);
    CHECK(number_after(output, "accuracy: ") > 0.5);
}

TEST_CASE("a newcomer's evaluation of 10,000 images, given as floats, in one call within 1 GB") {
    const std::string program = std::string(NEWCOMER "/evaluate ") + mnist;
    const Finished f = run_program("/bin/sh -c 'ulimit -v 1048576; exec " + program + "'");
    INFO(f.output);
    REQUIRE(f.status == 0);
    CHECK(number_after(f.output, "error ") > 50);  // it is not trained
    CHECK(number_after(f.output, "peak ") < 300);
}

}  // namespace
}  // namespace bitale
