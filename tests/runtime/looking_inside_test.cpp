// What people see of a function: the report of one screen, files for each kernel, pictures, lines in
// debuggers.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/plan/title.h"
#include "codegen/print/comments.h"
#include "codegen/print/writer.h"
#include "graph/base/lines.h"
#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "runtime/cpu/debug_lines.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/program.h"
#include "runtime/figures.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Two kernels with something stored in between, and an index that counts from the end.
struct Small {
    Shared table = shared(uniform_values({64, 40}, -1, 1, 1), "table"), w = shared(zeros({40, 8}), "weights");
    Expr loss;
    Function step;
    explicit Small(const std::string& device, bool profile = false);
};

constexpr unsigned line_of_product = __LINE__ + 4;
Small::Small(const std::string& device, bool profile) {
    const Expr i = lscalar("i");
    const Expr rows = table[Slice{i * 8, (i + 1) * 8}];
    loss = sum(sqr(dot(tanh(rows), w) - 1));
    step = function(
        {i}, loss,
        {.updates = sgd(loss, {w}, 0.1), .name = "small step", .device = device, .profile = profile});
}

std::vector<std::string> lines_of_text(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

bool names_library(const std::string& text) {
    static const std::regex lines("\\b(index|slice|expr|optimizers|reduce|matmul|rows)\\.(cpp|h):[0-9]+");
    return std::regex_search(text, lines);
}

}  // namespace

TEST_CASE("a report is one screen of the user's lines", "[core]") {
    for (const std::string device : {"cpu", "null"})
        for (const bool profile : {false, true}) {
            const Small small(device, profile);
            Function step = small.step;
            for (int k = 0; k < 3; ++k) step(k);
            const std::string report = step.report();
            INFO(report);
            const std::vector<std::string> lines = lines_of_text(report);
            CHECK(lines.size() <= 50);
            // Found where the path is relative to a folder above this program, too; cut at the screen's
            // width.
            const std::string source = "  loss = sum(sqr(";
            for (const std::string& line : lines) CHECK(line.size() <= 80);
            CHECK(!names_library(report));
            CHECK(!names_library(step.report(Detail::complete)));
            CHECK_THAT(report,
                       ContainsSubstring("Function small step at looking_inside_test.cpp:") &&
                           ContainsSubstring("looking_inside_test.cpp:" + std::to_string(line_of_product)) &&
                           ContainsSubstring(source) && ContainsSubstring("Look first at ") &&
                           ContainsSubstring(" launches per call") &&
                           ContainsSubstring("your line, with its gradient") &&
                           ContainsSubstring("update of \"weights\"") &&
                           ContainsSubstring("report(Detail::complete)"));
            const bool measured = profile && device == "cpu";
            CHECK((report.find("by the profile of 3 calls") != std::string::npos) == profile);
            if (measured) CHECK_THAT(report, ContainsSubstring("GB/s") && ContainsSubstring("roof"));
            const std::string first = report.substr(report.find("Look first at "));
            const std::string advice =
                std::regex_replace(first.substr(0, first.find("\n\n")), std::regex("\n"), " ");
            INFO(advice);
            const std::string number = "[0-9.]+", time = number + " [num]?s",
                              at_roof = "( It takes " + time + ", and at the roof " + time +
                                        ", for its .+: the function would take " + number + " % less[.])";
            // A kernel that is faster than memory has no roof: its data is cached.
            const bool may_lack_roof = !measured || report.find("  cached\n") != std::string::npos;
            const std::string stored =
                "( It (reads|writes) .+ [(].*B[)] (of|for) [0-9, ]+, which is stored: .+[.])";
            CHECK(std::regex_match(
                advice, std::regex("Look first at [0-9]+: " + number + " % of the (estimated )?time[.]" +
                                   at_roof + (may_lack_roof ? "?" : "") + stored + (measured ? "?" : ""))));
            if (!profile)
                CHECK_THAT(report,
                           ContainsSubstring("of one core per call, estimated for the last call's lengths"));
            // A length with a long formula has a name.
            CHECK_THAT(step.report(Detail::complete), ContainsSubstring("Materialised buffers") &&
                                                          ContainsSubstring("length n, at most 8, = ") &&
                                                          ContainsSubstring(" launches per call"));
        }
}

// Which the kernel reads itself, as well.
TEST_CASE("the first kernel to look at is named with the largest value that it stores", "[core]") {
    const Shared data = shared(Array(uint8, {1000, 784}), "data"), w = shared(zeros({784, 10}), "w");
    const Expr f = cast(data, float32);
    const Expr loss = mean(softmax_crossentropy(dot((f - mean(f, 1, {.keepdims = true})) / 78, w),
                                                shared(Array(int32, {1000}), "labels")));
    const Function step = function({}, loss, {.updates = sgd(loss, {w}, 0.1), .device = "null"});
    const std::string report = step.report();
    INFO(report);
    CHECK_THAT(report, ContainsSubstring("It writes div (3.14 MB) for"));
}

TEST_CASE("reports cut no file's name", "[core]") {
    const std::string name =
                          "a_file_whose_name_is_longer_than_what_is_left_of_a_line_of_a_report_"
                          "and_longer_than_a_line_is.cpp",
                      shorter = "a_file_with_a_name_of_fifty_characters_in_a_report.cpp";
    for (const std::string& file : {name, shorter}) {
        const Where where{file.c_str(), 12};
        const Expr x = matrix("x");
        Function f = function({x}, softmax(dot(x, exp(Arg(x, where)), where), 1, where), {.device = "null"});
        f(Array(float32, {200, 200}));
        const std::string report = f.report();
        INFO(report);
        int named = 0;
        for (std::size_t at = report.find("a_file"); at != std::string::npos;
             at = report.find("a_file", at + 1)) {
            ++named;
            CHECK(report.compare(at, file.size() + 3, file + ":12") == 0);
        }
        CHECK(named >= 2);
    }
}

TEST_CASE("long formulas of a report are numbers", "[core]") {
    const Expr x = input(float32, {-1, 8, 64, 64}, "x");
    const Function f = function({x}, {sum(exp(max_pool(x, {2, 2}))), max_pool(exp(x), {3, 3}, {.stride = 1})},
                                {.device = "null", .specialise = false});
    const std::string report = f.report(Detail::complete);
    INFO(report);
    for (const std::string& line : lines_of_text(report))
        if (line.find(" moved, ") != std::string::npos) CHECK(line.size() < 350);
    CHECK_THAT(report, ContainsSubstring("B for typical lengths moved, "));
}

TEST_CASE("operations have the words of users", "[core]") {
    const Shared images = shared(uniform_values({60, 12}, 0, 256, 1).as(uint8), "images"),
                 labels = shared(uniform_values({60}, 0, 3, 2).as(int32), "labels"),
                 w = shared(uniform_values({12, 7}, -1, 1, 3), "w"),
                 v = shared(uniform_values({7, 3}, -1, 1, 4), "v");
    const Expr x = matrix("x"), y = ivector("y"), i = lscalar("i");
    const Expr p = softmax(dot(relu(dot(x / 255, w)), v));
    const Expr loss = mean(categorical_crossentropy(p, y)), batch = range(i * 10, (i + 1) * 10);
    for (const std::string device : {"cpu", "emulator", "null"}) {
        Function step = function({i}, {loss, sum(images[Slice{i - 5, i + 5}])},
                                 {.updates = sgd(loss, {w, v}, 0.1),
                                  .givens = {{x, cast(images[batch], float32)}, {y, labels[batch]}},
                                  .device = device});
        step(1);
        const std::string report = step.report(Detail::complete), graph = debugprint(step);
        INFO(report << graph);
        for (const std::string& text : {report, graph}) {
            for (const char* word : {"slice", "one_hot", "gradient of relu"})
                CHECK_THAT(text, ContainsSubstring(word));
            const std::regex internal(
                "\\b(rows|unpick|place_rows|permute|expand) (at [a-z]|[(]?u?int|[(]?float)|relu int64");
            CHECK(!std::regex_search(text, internal));
        }
        CHECK_THAT(graph, ContainsSubstring("maximum int64"));
        // Each root says what it is.
        CHECK_THAT(graph, ContainsSubstring("output 0:\n#1 ") && ContainsSubstring("\noutput 1:\n#") &&
                              ContainsSubstring("\nnew value of \"w\":\n#") &&
                              ContainsSubstring("\nthe first of 10 rows of \"images\" (uint8 [60, 12])") &&
                              ContainsSubstring(" must be in [0, 51):\n#"));
    }
    // Also in messages, and a user's own names stay.
    const Expr rows = images[batch];
    CHECK_THAT(debugprint(rows), ContainsSubstring("slice uint8 [10, 12]"));
    CHECK_THAT(debugprint(grad(sum(abs(clip(x, 0, 1))), x)), ContainsSubstring("gradient of clip float32"));
    CHECK_THAT(debugprint(where(gt(x, 0), x, 0)), ContainsSubstring("where float32"));
    const Expr image = input(float32, {2, 1, 5, 5}, "image"), filters = input(float32, {3, 1, 3, 3}, "f");
    CHECK_THAT(debugprint(conv2d(image, filters)), ContainsSubstring("#1 conv2d float32 [2, 3, 3, 3]"));
    CHECK_THAT(debugprint(transpose(x)), ContainsSubstring("#1 transpose float32"));
    CHECK_THAT(debugprint(concatenate({x, x})), ContainsSubstring("#1 concatenate float32"));
    CHECK_THAT(debugprint(x + vector("b")), ContainsSubstring("broadcast_to float32"));
}

TEST_CASE("figures count what a product's kernel updates in place, and estimate threads", "[core]") {
    const Expr x = input(float32, {512, 600}, "x");
    const Shared w = shared(uniform_values({600, 500}, -0.1, 0.1, 1), "w");
    const Expr loss = sum(sqr(dot(x, w)));
    const Function step = function({x}, loss, {.updates = adam(loss, {w}, 0.1), .device = "cpu"});
    const Program& program = *step.state().program;
    const Figures figures = figures_of(program, Lengths(program, {}), {});
    int updates = 0;
    for (const StepFigures& s : figures.steps) {
        const auto* product = std::get_if<GemmStep>(&s.step->operation);
        if (!product || !product->epilogue || !s.step->commits) continue;
        ++updates;
        CHECK(s.writes >= 3 * 4 * 600 * 500);  // w and Adam's two averages
        CHECK(s.reads >= s.writes);
        CHECK_THAT(s.step->title, ContainsSubstring("update of \"w\" (.m, .v)"));
        CHECK_THAT(s.step->why,
                   ContainsSubstring("an estimated ") && ContainsSubstring("as generated code, "));
    }
    CHECK(updates == (gemm_library().present ? 1 : 0));
    CHECK(seconds_on(figures, 1) == Approx(figures.seconds));
    CHECK(seconds_on(figures, 4) < figures.seconds);
    CHECK(seconds_on(figures, 4) >= figures.seconds / 4);
}

TEST_CASE("variables stand with those whose names continue theirs", "[core]") {
    StepTitle title;
    CHECK(title.text().empty());
    title.add("dot");
    title.add("sum");
    CHECK(title.text() == "dot + sum");
    Graph graph;
    for (const char* name : {"w.m", "w", "b", "w.v", "wide"}) {
        const Shared variable = shared(zeros({3}), name);
        graph.updates.push_back({shared_of(Expr(variable).node()), (variable + 1).node(), {}});
        title.add(graph, graph.updates.back().value);
    }
    title.add(graph, (vector("x") * 2).node());
    CHECK(title.text() == "dot + sum + mul + update of \"w\" (.m, .v), \"b\", \"wide\"");
}

TEST_CASE("a profile has shares, rates and the numbers of the report", "[core]") {
    const Small small("cpu", true);
    Function step = small.step;
    CHECK_THAT(step.profile().to_string(), ContainsSubstring("no times"));
    for (int k = 0; k < 3; ++k) step(k);
    const Profile profile = step.profile();
    int number = 0;
    std::int64_t flops = 0;
    for (const Profile::Row& row : profile.rows) {
        CHECK(row.number == ++number);
        CHECK(row.name == step.kernels().at(static_cast<std::size_t>(number - 1)).name);
        CHECK(row.bytes > 0);
        CHECK(!names_library(row.where));
        flops += row.flops;
    }
    CHECK(flops >= 2 * 2 * 8 * 40 * 8);  // the product and its gradient
    CHECK_THAT(profile.to_string(), ContainsSubstring("share") && ContainsSubstring("GFLOP/s") &&
                                        ContainsSubstring(" % ") && ContainsSubstring("in all"));
}

TEST_CASE("a dump has a file for each kernel, one for readers beside it, and the prelude apart", "[core]") {
    const TemporaryFolder folder;
    Options o = options();
    o.dump = folder / "dump";
    const ScopedOptions scoped(o);
    for (const std::string device : {"cpu", "emulator"}) {
        const Small small(device);
        const Function& step = small.step;
        const std::string own = step.state().dump_folder + "/kernels/",
                          kind = device == "cpu" ? ".cpp" : ".cu";
        const std::string report = text_of_file(step.state().dump_folder + "/report.txt");
        CHECK(!text_of_file(own + "prelude.h").empty());
        const std::string guide = text_of_file(step.state().dump_folder + "/README.txt");
        CHECK_THAT(guide, ContainsSubstring("  report.txt            open this first") &&
                              ContainsSubstring(".readable" + kind + "  "));
        // It names no file that is not there.
        for (const std::string& line : lines_of_text(guide.substr(0, guide.find("\nKernels")))) {
            std::istringstream words(line);
            std::string name;
            words >> name;
            if (!line.starts_with("  ") || name == "pass_N_NAME.txt") continue;
            INFO(line);
            CHECK(std::filesystem::exists(step.state().dump_folder + "/" + name));
        }
        for (const char* name : {"report_full.txt", "memory_plan.svg", "graph_before.txt", "program.json"})
            CHECK_THAT(guide, ContainsSubstring(std::string("\n  ") + name + "  "));
        int kernels = 0;
        std::string all;
        for (const Kernel& kernel : step.kernels()) {
            if (kernel.source.empty()) continue;
            ++kernels;
            const std::string name = kernel.name.substr(kernel.name.find("k_"));
            INFO(device << " " << name);
            CHECK_THAT(report, ContainsSubstring(name));
            const std::string compiled = text_of_file(own + name + kind),
                              readable = text_of_file(own + name + ".readable" + kind);
            CHECK_THAT(compiled,
                       ContainsSubstring("#include \"prelude.h\"\n") && ContainsSubstring(name + "("));
            for (const char* of_user : {"table", "weights", "looking_inside_test", "//"})
                CHECK(compiled.find(of_user) == std::string::npos);
            // To a compiler they are the same.
            CHECK(without_comments(readable) == compiled);
            all += readable;
        }
        CHECK(kernels > 1);
        CHECK_THAT(all, ContainsSubstring("shared \"table\", float32 [64, 40]") &&
                            ContainsSubstring("over axis 1 of p") && ContainsSubstring(" of the report: ") &&
                            ContainsSubstring("looking_inside_test.cpp:" + std::to_string(line_of_product)));
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(o.dump)) {
        if (entry.path().extension() != ".cpp") continue;
        INFO(entry.path());
        CHECK(run_program({"c++", "-std=c++17", "-w", "-fsyntax-only", entry.path().string()}, 60)
                  .said.empty());
    }
}

TEST_CASE("debug_kernels gives the user's lines to debuggers, and the same results", "[core]") {
    std::vector<double> losses[2];
    for (const bool debug : {false, true}) {
        const TemporaryFolder cache;
        Options o = options();
        o.debug_kernels = debug;
        o.cache_directory = cache.path();
        const ScopedOptions scoped(o);
        const Small small("cpu");
        Function step = small.step;
        for (int k = 0; k < 3; ++k) losses[debug].push_back(step(k));
        std::string text;
        for (const Kernel& kernel : step.kernels()) text += kernel.source;
        const std::string line = "#line " + std::to_string(line_of_product) + " \"";
        CHECK((text.find(line) != std::string::npos) == debug);
        std::string objects;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path()))
            if (entry.path().extension() == ".so") objects += text_of_file(entry.path().string());
        CHECK((objects.find("looking_inside_test.cpp") != std::string::npos) == debug);
    }
    CHECK(losses[0] == losses[1]);
}

TEST_CASE("helpers that are inlined have the lines of their callers", "[core]") {
    const std::string assembly =
        "\t.file\t\"key.cpp\"\n\t.file 1 \"/tmp/x/key.cpp\"\nhelper:\n\t.cfi_startproc\n\t.loc 1 5 1\n\tret\n"
        "k_1:\n\t.cfi_startproc\n\t.file 2 \"/home/net.cpp\"\n\t.loc 2 15 1\n\tmov\n\t.loc 1 5 1\n\tadd\n"
        "\t.loc 2 16 1\n\tret\n";
    std::string expected = assembly;
    expected.erase(expected.find("\t.loc 1 5 1\n\tadd"), 12);
    CHECK(with_lines_of_callers(assembly, "/tmp/x/key.cpp") == expected);
    CHECK(with_lines_of_callers(assembly, "/tmp/x/other.cpp") == assembly);
    CHECK(with_lines_of_callers("", "a.cpp").empty());
    CHECK(with_lines_of_callers("\t.loc 7", "a.cpp") == "\t.loc 7");
    const std::string section = "\t.section\t.debug_abbrev,\"\",@progbits\n", code = "\t.uleb128 0x8\n",
                      behind = "\t.byte\t0x1\n\t.uleb128 0x31\n\t.uleb128 0x13\n",
                      form = "\t.uleb128 0x1d\n\t.uleb128 0x16\n";
    CHECK(with_lines_of_callers(section + code + "\t.uleb128 0x1d\n" + behind + form, "a.cpp") ==
          section + code + "\t.uleb128 0xb\n" + behind + form);
    const std::string clang = "\t.byte\t29 # DW_TAG_inlined_subroutine\n";
    CHECK(with_lines_of_callers(section + clang, "a.cpp") == section + "\t.byte\t11\n");
    CHECK(with_lines_of_callers(clang, "a.cpp") == clang);
}

TEST_CASE("a path in a #line is text, whatever it holds", "[core]") {
    Writer writer(true);
    writer.line("int a;");
    writer.at({"dir/a\"b\\c\nd?\xc3\xb6.cpp", 7});
    writer.line("int b;");
    writer.comment("no code");
    writer.at({});
    writer.line("int c;");
    const std::string line = "#line 7 \"dir/a\\042b\\134c\\012d\\077\\303\\266.cpp\"\n";
    CHECK(writer.text() == "int a;\n" + line + "int b;\n// no code\n" + line + "int c;\n");
    Writer plain;
    plain.at({"a.cpp", 7});
    plain.line("int b;");
    CHECK(plain.text() == "int b;\n");
}

TEST_CASE("lines of the library are told from those of its users", "[core]") {
    const std::string here = __FILE__, root = here.substr(0, here.find("tests/runtime/"));
    for (const char* own : {"ops/shape/index.cpp", "include/bitale/expr.h", "graph/walk/length.cpp"})
        CHECK(is_of_library({(root + own).c_str(), 48}));
    CHECK(!is_of_library(Where::current()));
    CHECK(!is_of_library({"net.cpp", 1}));
    for (const char* other : {"examples/mlp.cpp", "ops/mine.cpp", "include/mine.h"})
        CHECK(!is_of_library({(root + other).c_str(), 1}));
    CHECK(at_line({}).empty());
    CHECK(at_line({"dir/net.cpp", 12}) == " at net.cpp:12");
}

TEST_CASE("a picture has a frame for each kernel, and is SVG where Graphviz is installed", "[core]") {
    const Small small("cpu");
    const std::string dot = graphviz(small.step);
    CHECK_THAT(dot, ContainsSubstring("subgraph cluster_1 {") && ContainsSubstring("label=\"1. ") &&
                        ContainsSubstring("subgraph cluster_2 {") &&
                        ContainsSubstring("looking_inside_test.cpp:" + std::to_string(line_of_product)));
    CHECK(graphviz(small.loss).find("cluster") == std::string::npos);
    CHECK_THAT(graphviz(Small("reference").step), ContainsSubstring("digraph"));

    const Small planned("null");  // needs no compiler
    const TemporaryFolder folder;
    const ScopedVariable path("PATH", folder.path());
    CHECK_THAT(message_of<Error>([&] { graph_svg(planned.step); }),
               ContainsSubstring("dot cannot be started") && ContainsSubstring("apt-get install graphviz"));
    const auto install = [&](const std::string& script) {
        write_file(folder / "dot", "#!/bin/sh\n" + script);
        REQUIRE(chmod((folder / "dot").c_str(), 0700) == 0);
    };
    // As the program is called: dot -Tsvg -o TO FROM.
    install("read -r first < \"$4\"; echo \"<svg>$1 $first</svg>\" > \"$3\"\n");
    CHECK(graph_svg(planned.step) == "<svg>-Tsvg digraph bitale {</svg>\n");
    CHECK(graph_svg(small.loss) == "<svg>-Tsvg digraph bitale {</svg>\n");
    install("echo syntax error >&2; exit 1\n");
    CHECK_THAT(message_of<Error>([&] { graph_svg(small.loss); }), ContainsSubstring("syntax error"));

    Options o = options();
    o.dump = folder / "dump";
    const ScopedOptions scoped(o);
    const Expr x = bitale::vector("x");
    const std::string with = function({x}, x + 1, {.device = "null"}).state().dump_folder;
    CHECK_THAT(text_of_file(with + "/graph_before.svg.txt"), ContainsSubstring("syntax error"));
    CHECK_THAT(text_of_file(with + "/README.txt"), !ContainsSubstring("graph_after.svg  ") &&
                                                       !ContainsSubstring("graph_before.svg  ") &&
                                                       ContainsSubstring("graph_before.txt  "));
    const std::string planned_only =
        function({x}, x + 3, {.device = "null", .specialise = false}).state().dump_folder;
    CHECK_THAT(text_of_file(planned_only + "/README.txt"),
               !ContainsSubstring("graph_after.svg  ") && ContainsSubstring("graph_after.dot is its text"));
    install("echo '<svg/>' > \"$3\"\n");
    const std::string drawn =
        function({x}, x + 2, {.device = "null", .specialise = false}).state().dump_folder;
    CHECK(text_of_file(drawn + "/graph_after.svg") == "<svg/>\n");
    CHECK_THAT(text_of_file(drawn + "/README.txt"),
               ContainsSubstring("graph_after.svg  ") && !ContainsSubstring("graph_after.svg.txt"));
    CHECK_THAT(text_of_file(drawn + "/graph_after.dot"), ContainsSubstring("cluster_1"));
}
