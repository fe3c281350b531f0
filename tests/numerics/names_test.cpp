// Names of variables and functions come from files and users: they are data in every text that is made of
// them, and nothing that is compiled depends on them.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/pipeline.h"
#include "codegen/print/comments.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/target.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// `run` is the path of a file that a name makes if it becomes code.
std::vector<std::string> hostile_names(const std::string& run) {
    const std::string code =
        "int system(const char*) __asm__(\"system\"); static int hostile = system(\"touch " + run + "\");";
    return {"w\n" + code + " //",
            "w\r" + code + " //",
            "w*/ " + code + " /*",
            ")emulated\";\n" + code + "\nchar t[] = R\"emulated(",
            ")\" " + code,
            "C:\\data\\",
            "trigraph ?\?/",
            "\\\n" + code,
            "quote \" and 'quote'",
            std::string("zero\0inside", 11),
            "\x1b[2Jescape",
            "not UTF-8: \xff\xfe",
            "gr\xc3\xb6\xc3\x9f"
            "e",
            "right to left \xe2\x80\xae",
            "{} {0} %s %n $(touch " + run + ") `touch " + run + "`",
            "\" ]; hostile [label=\"",
            std::string(5000, 'n')};
}

// A moving average of a weight and a carried state: names of both are in titles of kernels.
struct Averaged {
    Shared average, weight;
    Function step;
    Averaged(const std::string& name, const std::string& device)
        : average(shared(Array(std::vector<float>{1, 2, 3}), name)),
          weight(shared(Array(std::vector<float>{4, 5, 6}), name + "2")) {
        const Expr rate = scalar("r" + name, float32);
        step = function({rate}, {sum(average * weight)},
                        {.updates = {{average, average * 0.5f + weight * rate}, {weight, average * 3}},
                         .name = "step " + name,
                         .device = device});
    }
    std::vector<double> results() {
        std::vector<double> all = {double(step(0.5F)), double(step(0.5F))};
        for (const Shared& s : {average, weight})
            for (const double x : s.get_value().to_vector<double>()) all.push_back(x);
        return all;
    }
};

bool is_printable(const std::string& text) {
    return text.find('\n') == std::string::npos && printable(text) == text;
}

std::string without_line_ends(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

// What a graph's kernels are compiled from, on a CPU and on a GPU, and what they are called.
std::vector<std::string> code_of(const RandomGraph& random, const std::string& name) {
    FunctionOptions options;
    options.updates = random.updates;
    options.name = name;
    options.device = "null";
    options.on_unused_input = OnUnused::ignore;
    const std::vector<Input> inputs(random.inputs.begin(), random.inputs.end());
    const Function f = function(inputs, random.outputs, options);
    Graph graph = *f.state().plain;
    optimize(graph);
    std::vector<std::string> code;
    const Program on_gpu = generate(graph, cuda::target_of("sm_90"));
    for (const Program* program : {f.state().program.get(), &on_gpu})
        for (const KernelText& kernel : program->kernels) {
            code.push_back(kernel.name);
            code.push_back(without_comments(kernel.body));
            code.push_back(without_comments(kernel.cuda_body));
        }
    // The whole is JSON that can be read again.
    const std::string json = program_to_json(on_gpu);
    CHECK(program_from_json(json).kernels.size() == on_gpu.kernels.size());
    return code;
}

}  // namespace

TEST_CASE("a name runs no code, whatever it holds, and changes no result") {
    const std::vector<double> expected = Averaged("plain", "cpu").results();
    for (const std::string device : {"cpu", "reference", "null", "emulator"}) {
        if (device == "emulator" && emulator_left_out()) continue;
        const TemporaryFolder folder;
        for (const std::string& name : hostile_names(folder / "made")) {
            INFO(device << ": " << printable(name.substr(0, 100)));
            Averaged hostile(name, device);
            if (device != "null") CHECK(hostile.results() == expected);
            CHECK(!std::filesystem::exists(folder / "made"));
            CHECK(is_printable(without_line_ends(hostile.step.report())));
            CHECK(hostile.average.name() == name);
        }
    }
}

TEST_CASE("random graphs give the same code under hostile names as under plain ones") {
    const std::vector<std::string> names = hostile_names("made");
    std::size_t kernels = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const auto graph = [&](const std::string& suffix) {
            GraphGenerator generator(seed, seed % 2 ? Arithmetic::whole : Arithmetic::smooth);
            generator.suffix = suffix;
            return generator.generate(15);
        };
        const std::string& name = names[seed % names.size()];
        INFO("seed " << seed << ", " << printable(name.substr(0, 100)));
        const std::vector<std::string> plain = code_of(graph(""), "plain"),
                                       hostile = code_of(graph(name), name);
        REQUIRE(plain.size() == hostile.size());
        for (std::size_t k = 0; k < plain.size(); ++k) {
            INFO("text " << k % 3 << " of kernel " << k / 3);
            CHECK(plain[k] == hostile[k]);
        }
        kernels += plain.size() / 3;
    }
    CHECK(kernels > 100);
}

TEST_CASE("text for people stays on its line and ends where it seems to end") {
    CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
    CHECK(printable("gr\xc3\xb6\xc3\x9f"
                    "e") ==
          "gr\xc3\xb6\xc3\x9f"
          "e");
    CHECK(printable("\xff\xc3") == "\\xff\\xc3");
    CHECK(printable("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80") ==
          "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
    CHECK(printable("\xe2\x80\xae!") == "\\xe2\\x80\\xae!");
    CHECK(printable("C:\\data") == "C:\\data");
    CHECK(in_quotes("a \"b\" \\") == "\"a \\\"b\\\" \\\\\"");
    CHECK(in_quotes("") == "\"\"");
}

TEST_CASE("an npz file whose names hold control characters is refused, and none is written") {
    const TemporaryFolder folder;
    const std::string good = folder / "good.npz", bad = folder / "bad.npz";
    const std::map<std::string, Array> values = {{"weight", Array(1.0F)}};
    save_npz(good, values);
    std::string bytes = text_of_file(good);
    for (std::size_t at = 0; (at = bytes.find("weight", at)) != std::string::npos; ++at) bytes[at + 2] = '\n';
    write_file(bad, bytes);
    CHECK_THAT(message_of<FileError>([&] { load_npz(bad); }),
               ContainsSubstring("control characters, \"we\\nght.npy\""));
    CHECK_THAT(message_of<FileError>([&] {
                   save_npz(bad, {{"we\nght", Array(1.0F)}});
               }),
               ContainsSubstring("the name \"we\\nght\" holds control characters"));
    CHECK(load_npz(good).size() == 1);
}
